// Filter policies as values, and their compiler to classic BPF. Owns the mechanism: it can express
// any table of verdicts, and knows no opinion about a single system call (plan/filter_policy does).
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "isolation/syscall_table.h"

namespace hutch::isolation {

// What happens to a call. `refuse` answers with an errno without entering the call; errno 0 makes
// the call a no-op that succeeds. `kill` ends the whole process with SIGSYS.
struct Verdict {
  enum class Kind : std::uint8_t { allow, refuse, kill };
  Kind kind = Kind::kill;
  std::uint16_t error = 0;

  friend bool operator==(const Verdict&, const Verdict&) = default;
};

constexpr Verdict allow() { return {Verdict::Kind::allow, 0}; }
constexpr Verdict refuse(int error) {
  return {Verdict::Kind::refuse, static_cast<std::uint16_t>(error)};
}
constexpr Verdict kill_process() { return {Verdict::Kind::kill, 0}; }

// How much of a 64-bit argument register counts. The kernel takes `int` arguments from the low half
// and ignores the rest, so a test of all 64 bits would be bypassed by setting a high one.
enum class ArgWidth : std::uint8_t { low32, all64 };

// Holds when (argument & mask) equals `value`, or, for at_least, is not below it (unsigned).
// at_least exists for low32 only.
struct ArgTest {
  enum class Compare : std::uint8_t { equal, at_least };
  std::uint8_t index = 0;  // 0 .. 5
  ArgWidth width = ArgWidth::low32;
  Compare compare = Compare::equal;
  std::uint64_t mask = ~0ULL;
  std::uint64_t value = 0;
};

// The verdict for calls for which every test holds. No test at all would match everything and is
// refused by the compiler: that is what `otherwise` is for.
struct ArgRule {
  std::vector<ArgTest> all;
  Verdict verdict;
};

// One system call: the first arg rule that matches decides, else `otherwise`.
struct FilterRule {
  std::uint32_t number = 0;
  Verdict otherwise;
  std::vector<ArgRule> rules;
};

struct FilterPolicy {
  Arch arch = Arch::x86_64;
  std::vector<FilterRule> rules;  // any order, one for each number
  Verdict unknown;                // numbers without a rule
  Verdict foreign_arch;  // another instruction set or a 32-bit entry: numbers mean other calls
  Verdict foreign_abi;   // x32: the 64-bit entry with bit 30 set in the number
};

// A program for seccomp(SECCOMP_SET_MODE_FILTER). internal when the policy contradicts itself (two
// rules for a number, a rule without tests) or the program would exceed the kernel's 4096
// instructions.
Result<std::vector<sock_filter>> compile_filter(const FilterPolicy& policy);

// The verdict that the policy itself gives, found without compiling: what the program is tested
// against. `arch_token` is an AUDIT_ARCH_ value.
struct SyscallFrame {
  std::uint32_t arch_token = 0;
  std::uint32_t number = 0;
  std::uint64_t args[6] = {};
};
Verdict interpret(const FilterPolicy& policy, const SyscallFrame& frame);

std::uint32_t arch_token(Arch arch);

// The kernel's SECCOMP_RET_ value of a verdict, and back.
std::uint32_t return_value(Verdict verdict);
Result<Verdict> verdict_of(std::uint32_t return_value);

// "allow", "EPERM", "kill", "succeed" (refused with errno 0).
std::string verdict_text(Verdict verdict);
// "arg1 & 0xf == 1 and arg2 == 0: allow".
std::string rule_text(const ArgRule& rule);

}  // namespace hutch::isolation
