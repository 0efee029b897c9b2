#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>

#include "guest/guest.h"

namespace hutch::guest {
namespace {

// Splits NUL-terminated strings into a null-terminated vector of at most `max` - 1 pointers.
bool split(char* strings, std::size_t size, char** vector, std::size_t max) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < size;) {
    const std::size_t length = strnlen(strings + at, size - at);
    if (length == size - at || count + 1 >= max) return false;
    vector[count++] = strings + at;
    at += length + 1;
  }
  vector[count] = nullptr;
  return true;
}

}  // namespace

bool map_plan(int fd, GuestPlan* plan) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return false;
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size < sizeof(plan::PlanBlock)) return false;
  void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  if (mapped == MAP_FAILED) return false;
  char* base = static_cast<char*>(mapped);
  plan::PlanBlock block;
  std::memcpy(&block, base, sizeof block);
  if (block.magic != plan::kPlanMagic) return false;
  std::size_t at = sizeof block;
  bool fits = true;
  const auto take = [&](std::uint32_t bytes) {
    char* part = base + at;
    at += (std::size_t{bytes} + 7) & ~std::size_t{7};
    fits = fits && at <= size;
    return part;
  };
  plan->init = take(plan->init_size = block.init_bytes);
  plan->program = take(plan->program_size = block.program_bytes);
  plan->execute = take(plan->execute_size = block.execute_bytes);
  plan->courier = take(plan->courier_size = block.courier_bytes);
  for (int kind = 0; kind < 3; ++kind) {
    char* instructions = take(block.filter_bytes[kind]);
    plan->filters[kind].len =
        static_cast<unsigned short>(block.filter_bytes[kind] / sizeof(sock_filter));
    plan->filters[kind].filter = reinterpret_cast<sock_filter*>(instructions);
  }
  char* argv = take(block.argv_bytes);
  char* envp = take(block.envp_bytes);
  return fits && split(argv, block.argv_bytes, plan->argv, 16) &&
         split(envp, block.envp_bytes, plan->envp, 64);
}

}  // namespace hutch::guest
