#include "isolation/seccomp.h"

#include <linux/audit.h>
#include <linux/seccomp.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <map>
#include <optional>

namespace hutch::isolation {
namespace {

constexpr std::uint32_t kForeignAbiBit = 0x40000000;
constexpr std::size_t kInstructionsMax = BPF_MAXINSNS;

// Numbers `first` up to the next range's first share one answer: a verdict, or one call's rule.
struct Range {
  std::uint32_t first = 0;
  Verdict verdict;
  const FilterRule* rule = nullptr;
};

// Emits a program from its end to its start. Classic BPF jumps forward only, so every target is
// already in place, and its distance known, when a jump to it is written.
class Emitter {
 public:
  // A place in the program: how many instructions stand from it to the end.
  using Label = std::size_t;

  Label give(Verdict verdict) {
    const std::uint32_t value = return_value(verdict);
    const auto seen = returns_.find(value);
    if (seen != returns_.end() && backward_.size() - seen->second <= kReuseWithin) {
      return seen->second;
    }
    const Label label = push({BPF_RET | BPF_K, 0, 0, value});
    returns_[value] = label;
    return label;
  }

  Label load(std::size_t offset) {
    return push({BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<std::uint32_t>(offset)});
  }

  Label bit_and(std::uint32_t mask) { return push({BPF_ALU | BPF_AND | BPF_K, 0, 0, mask}); }

  // A conditional jump reaches 255 instructions; what lies beyond goes over an unconditional one.
  Label branch(std::uint16_t compare, std::uint32_t value, Label yes, Label no) {
    const auto near = [&](Label target, std::size_t pending) {
      return backward_.size() + pending - target <= kReach;
    };
    // One of the two detours may push the other target out of reach, hence the spare place.
    if (!near(no, 1)) no = push({BPF_JMP | BPF_JA, 0, 0, distance(no)});
    if (!near(yes, 0)) yes = push({BPF_JMP | BPF_JA, 0, 0, distance(yes)});
    return push({static_cast<std::uint16_t>(BPF_JMP | BPF_K | compare),
                 static_cast<std::uint8_t>(distance(yes)), static_cast<std::uint8_t>(distance(no)),
                 value});
  }

  // Puts `target` next, so that the instruction written afterwards can fall through to it.
  void fall_to(Label target) {
    if (target != backward_.size()) push({BPF_JMP | BPF_JA, 0, 0, distance(target)});
  }

  std::vector<sock_filter> finish() && {
    std::ranges::reverse(backward_);
    return std::move(backward_);
  }

 private:
  static constexpr std::size_t kReach = 255;
  // Below the reach, so that the jump which wants the return value still makes it directly.
  static constexpr std::size_t kReuseWithin = 200;

  std::uint32_t distance(Label target) const {
    return static_cast<std::uint32_t>(backward_.size() - target);
  }

  Label push(sock_filter instruction) {
    backward_.push_back(instruction);
    return backward_.size();
  }

  std::vector<sock_filter> backward_;
  std::map<std::uint32_t, Label> returns_;
};

constexpr std::size_t arg_offset(std::uint8_t index, bool high) {
  // Both architectures are little-endian: the low half stands first.
  return offsetof(seccomp_data, args) + 8 * std::size_t{index} + (high ? 4 : 0);
}

Emitter::Label emit_half(Emitter& out, const ArgTest& test, bool high, Emitter::Label yes,
                         Emitter::Label no) {
  const auto half = [&](std::uint64_t whole) {
    return static_cast<std::uint32_t>(high ? whole >> 32U : whole);
  };
  const std::uint16_t compare = test.compare == ArgTest::Compare::equal ? BPF_JEQ : BPF_JGE;
  out.branch(compare, half(test.value), yes, no);
  if (half(test.mask) != ~0U) out.bit_and(half(test.mask));
  return out.load(arg_offset(test.index, high));
}

Emitter::Label emit_test(Emitter& out, const ArgTest& test, Emitter::Label yes, Emitter::Label no) {
  Emitter::Label label = emit_half(out, test, /*high=*/false, yes, no);
  if (test.width == ArgWidth::all64 && (test.mask >> 32U) != 0) {
    label = emit_half(out, test, /*high=*/true, label, no);
  }
  return label;
}

Emitter::Label emit_rule(Emitter& out, const FilterRule& rule) {
  Emitter::Label next = out.give(rule.otherwise);
  for (auto arg_rule = rule.rules.rbegin(); arg_rule != rule.rules.rend(); ++arg_rule) {
    Emitter::Label inside = out.give(arg_rule->verdict);
    for (auto test = arg_rule->all.rbegin(); test != arg_rule->all.rend(); ++test) {
      inside = emit_test(out, *test, inside, next);
    }
    next = inside;
  }
  return next;
}

// A balanced search: nine comparisons find any of 500 numbers. The kernel remembers numbers that
// are always allowed, and to learn them it runs the whole filter once for each number when it is
// installed: the shorter the path, the sooner a sandbox is ready.
Emitter::Label emit_search(Emitter& out, std::span<const Range> ranges) {
  if (ranges.size() == 1) {
    return ranges[0].rule != nullptr ? emit_rule(out, *ranges[0].rule)
                                     : out.give(ranges[0].verdict);
  }
  const std::size_t middle = ranges.size() / 2;
  const Emitter::Label right = emit_search(out, ranges.subspan(middle));
  const Emitter::Label left = emit_search(out, ranges.first(middle));
  return out.branch(BPF_JGE, ranges[middle].first, right, left);
}

std::vector<Range> ranges_of(const FilterPolicy& policy) {
  std::vector<const FilterRule*> sorted;
  sorted.reserve(policy.rules.size());
  for (const FilterRule& rule : policy.rules) sorted.push_back(&rule);
  std::ranges::sort(sorted, {}, &FilterRule::number);

  std::vector<Range> ranges;
  const auto add = [&](Range range) {
    if (!ranges.empty() && range.rule == nullptr && ranges.back().rule == nullptr &&
        ranges.back().verdict == range.verdict) {
      return;
    }
    ranges.push_back(range);
  };
  std::uint32_t next = 0;
  for (const FilterRule* rule : sorted) {
    if (rule->number > next) add({next, policy.unknown, nullptr});
    add({rule->number, rule->otherwise, rule->rules.empty() ? nullptr : rule});
    next = rule->number + 1;
  }
  add({next, policy.unknown, nullptr});
  // Bit 30 marks x32 on x86-64; above it come only numbers that no kernel has.
  add({kForeignAbiBit, policy.foreign_abi, nullptr});
  add({kForeignAbiBit << 1U, policy.unknown, nullptr});
  add({(kForeignAbiBit << 1U) | kForeignAbiBit, policy.foreign_abi, nullptr});
  return ranges;
}

Status check(const FilterPolicy& policy) {
  std::map<std::uint32_t, int> seen;
  for (const FilterRule& rule : policy.rules) {
    const std::string name = "system call " + std::to_string(rule.number);
    if (rule.number >= kForeignAbiBit) return fail(ErrorCode::internal, name + " is out of range");
    if (++seen[rule.number] > 1) return fail(ErrorCode::internal, name + " has two rules");
    for (const ArgRule& arg_rule : rule.rules) {
      if (arg_rule.all.empty()) {
        return fail(ErrorCode::internal, name + " has an argument rule without a test");
      }
      for (const ArgTest& test : arg_rule.all) {
        const bool narrow = test.width == ArgWidth::low32;
        if (test.index > 5 || (test.compare == ArgTest::Compare::at_least && !narrow) ||
            (test.compare == ArgTest::Compare::equal && (test.value & ~test.mask) != 0) ||
            (narrow && (test.value >> 32U) != 0)) {
          return fail(ErrorCode::internal, name + " has an argument test that cannot hold");
        }
      }
    }
  }
  return {};
}

bool holds(const ArgTest& test, const SyscallFrame& frame) {
  std::uint64_t argument = frame.args[test.index] & test.mask;
  if (test.width == ArgWidth::low32) argument &= 0xffffffffU;
  return test.compare == ArgTest::Compare::equal ? argument == test.value : argument >= test.value;
}

std::string hex(std::uint64_t number) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), number < 10 ? "%llu" : "0x%llx",
                static_cast<unsigned long long>(number));
  return text.data();
}

}  // namespace

Result<std::vector<sock_filter>> compile_filter(const FilterPolicy& policy) {
  TRY(check(policy));
  const std::vector<Range> ranges = ranges_of(policy);
  Emitter out;
  const Emitter::Label search = emit_search(out, ranges);
  out.fall_to(search);
  const Emitter::Label number = out.load(offsetof(seccomp_data, nr));
  const Emitter::Label foreign = out.give(policy.foreign_arch);
  out.branch(BPF_JEQ, arch_token(policy.arch), number, foreign);
  out.load(offsetof(seccomp_data, arch));
  std::vector<sock_filter> program = std::move(out).finish();
  if (program.size() > kInstructionsMax) {
    return fail(ErrorCode::internal, "the filter has " + std::to_string(program.size()) +
                                         " instructions, the kernel takes " +
                                         std::to_string(kInstructionsMax));
  }
  return program;
}

Verdict interpret(const FilterPolicy& policy, const SyscallFrame& frame) {
  if (frame.arch_token != arch_token(policy.arch)) return policy.foreign_arch;
  if ((frame.number & kForeignAbiBit) != 0) return policy.foreign_abi;
  for (const FilterRule& rule : policy.rules) {
    if (rule.number != frame.number) continue;
    for (const ArgRule& arg_rule : rule.rules) {
      const auto match = [&](const ArgTest& test) { return holds(test, frame); };
      if (std::ranges::all_of(arg_rule.all, match)) return arg_rule.verdict;
    }
    return rule.otherwise;
  }
  return policy.unknown;
}

std::uint32_t arch_token(Arch arch) {
  return arch == Arch::x86_64 ? AUDIT_ARCH_X86_64 : AUDIT_ARCH_AARCH64;
}

std::uint32_t return_value(Verdict verdict) {
  switch (verdict.kind) {
    case Verdict::Kind::allow: return SECCOMP_RET_ALLOW;
    case Verdict::Kind::refuse: return SECCOMP_RET_ERRNO | verdict.error;
    case Verdict::Kind::kill: return SECCOMP_RET_KILL_PROCESS;
  }
  return SECCOMP_RET_KILL_PROCESS;
}

Result<Verdict> verdict_of(std::uint32_t value) {
  if (value == SECCOMP_RET_ALLOW) return allow();
  if (value == SECCOMP_RET_KILL_PROCESS) return kill_process();
  if ((value & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO) {
    return refuse(static_cast<int>(value & SECCOMP_RET_DATA));
  }
  return fail(ErrorCode::internal,
              "a filter returned " + hex(value) + ", which is no verdict of ours");
}

std::string verdict_text(Verdict verdict) {
  switch (verdict.kind) {
    case Verdict::Kind::allow: return "allow";
    case Verdict::Kind::kill: return "kill";
    case Verdict::Kind::refuse: break;
  }
  if (verdict.error == 0) return "succeed";
  const char* name = strerrorname_np(verdict.error);
  return name != nullptr ? name : "errno " + std::to_string(verdict.error);
}

std::string rule_text(const ArgRule& rule) {
  std::string text;
  for (const ArgTest& test : rule.all) {
    if (!text.empty()) text += " and ";
    text += test.width == ArgWidth::low32 ? "arg" : "wide arg";
    text += std::to_string(test.index);
    const std::uint64_t full = test.width == ArgWidth::low32 ? 0xffffffffU : ~0ULL;
    if ((test.mask & full) != full) text += " & " + hex(test.mask & full);
    text += test.compare == ArgTest::Compare::equal ? " == " : " >= ";
    text += hex(test.value);
  }
  return text + ": " + verdict_text(rule.verdict);
}

}  // namespace hutch::isolation
