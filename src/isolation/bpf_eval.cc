#include "isolation/bpf_eval.h"

#include <cstddef>
#include <cstring>
#include <string>

namespace hutch::isolation {
namespace {

tl::unexpected<Error> invalid(std::size_t at, const char* why) {
  return fail(ErrorCode::internal, "filter instruction " + std::to_string(at) + " " + why);
}

}  // namespace

Result<std::uint32_t> run_filter(std::span<const sock_filter> program, const seccomp_data& data) {
  std::uint32_t accumulator = 0;
  // Jumps go forward only, so the loop ends after at most one visit to each instruction.
  for (std::size_t at = 0; at < program.size(); ++at) {
    const sock_filter& now = program[at];
    bool taken = false;
    switch (now.code) {
      case BPF_RET | BPF_K: return now.k;
      case BPF_LD | BPF_W | BPF_ABS:
        if (now.k % 4 != 0 || now.k > sizeof(data) - 4) return invalid(at, "loads from nowhere");
        std::memcpy(&accumulator, reinterpret_cast<const char*>(&data) + now.k, 4);
        continue;
      case BPF_ALU | BPF_AND | BPF_K: accumulator &= now.k; continue;
      case BPF_JMP | BPF_JA:
        if (now.k >= program.size() - at - 1) return invalid(at, "jumps past the end");
        at += now.k;
        continue;
      case BPF_JMP | BPF_JEQ | BPF_K: taken = accumulator == now.k; break;
      case BPF_JMP | BPF_JGE | BPF_K: taken = accumulator >= now.k; break;
      case BPF_JMP | BPF_JGT | BPF_K: taken = accumulator > now.k; break;
      case BPF_JMP | BPF_JSET | BPF_K: taken = (accumulator & now.k) != 0; break;
      default: return invalid(at, "is of an unknown kind");
    }
    const std::size_t skip = taken ? now.jt : now.jf;
    if (skip >= program.size() - at - 1) return invalid(at, "jumps past the end");
    at += skip;
  }
  return fail(ErrorCode::internal, "the filter has no return");
}

}  // namespace hutch::isolation
