#include "service/host_memory.h"

#include <charconv>
#include <optional>
#include <string>

#include "base/sys.h"

namespace hutch::service {
namespace {

// The figure of a line such as "MemTotal:       24683404 kB", in bytes.
std::optional<std::uint64_t> figure(std::string_view text, std::string_view name) {
  const std::size_t at = text.find(name);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = text.substr(at + name.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  std::uint64_t kilobytes = 0;
  const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), kilobytes);
  if (parsed.ec != std::errc{}) return std::nullopt;
  return kilobytes * 1024;
}

}  // namespace

Result<HostMemory> parse_meminfo(std::string_view text) {
  const auto total = figure(text, "MemTotal:");
  const auto available = figure(text, "MemAvailable:");
  if (!total || !available) {
    return fail(ErrorCode::unsupported_host,
                "/proc/meminfo has no MemTotal or no MemAvailable that can be read");
  }
  return HostMemory{*total, *available};
}

HostMemory read_host_memory() {
  constexpr std::size_t kBytesMax = 64 * 1024;
  const auto text = sys::read_file("/proc/meminfo", kBytesMax);
  if (!text) return {};
  const auto memory = parse_meminfo(*text);
  return memory ? *memory : HostMemory{};
}

}  // namespace hutch::service
