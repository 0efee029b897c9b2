#include "isolation/seccomp.h"

#include <gtest/gtest.h>
#include <linux/audit.h>

#include <algorithm>
#include <cerrno>
#include <random>

#include "isolation/bpf_eval.h"

namespace hutch::isolation {
namespace {

FilterPolicy empty_policy() {
  return {.unknown = refuse(ENOSYS), .foreign_arch = kill_process(), .foreign_abi = refuse(EPERM)};
}

Verdict run(const std::vector<sock_filter>& program, const SyscallFrame& frame) {
  seccomp_data data{};
  data.arch = frame.arch_token;
  data.nr = static_cast<int>(frame.number);
  std::copy(std::begin(frame.args), std::end(frame.args), std::begin(data.args));
  const auto value = run_filter(program, data);
  if (!value) {
    ADD_FAILURE() << describe(value.error());
    return kill_process();
  }
  return verdict_of(*value).value();
}

// Policies as the generator can draw them: few or hundreds of numbers, long argument rules (so that
// jumps exceed 255 instructions), values near each other (so that tests hold now and then).
class PolicyDice {
 public:
  explicit PolicyDice(unsigned seed) : engine_(seed) {}

  FilterPolicy policy() {
    FilterPolicy policy = empty_policy();
    policy.arch = below(4) == 0 ? Arch::aarch64 : Arch::x86_64;
    const std::uint64_t density = 1 + below(8);
    const std::uint64_t rules_max = below(3) == 0 ? 12 : 2;
    for (std::uint32_t number = 0; number < 600; ++number) {
      if (below(8) >= density) continue;
      FilterRule rule{number, verdict(), {}};
      if (below(4) == 0) {
        for (std::uint64_t i = below(rules_max + 1); i > 0; --i) rule.rules.push_back(arg_rule());
      }
      policy.rules.push_back(rule);
    }
    std::shuffle(policy.rules.begin(), policy.rules.end(), engine_);
    return policy;
  }

  SyscallFrame frame(const FilterPolicy& policy, std::uint32_t number) {
    SyscallFrame frame{arch_token(policy.arch), number, {}};
    for (std::uint64_t& arg : frame.args) arg = value() | (below(4) == 0 ? below(3) << 32U : 0);
    return frame;
  }

 private:
  std::uint64_t below(std::uint64_t end) { return engine_() % end; }
  std::uint64_t value() { return below(2) == 0 ? below(4) : 62 + below(4); }

  Verdict verdict() {
    const std::array<Verdict, 4> all{allow(), refuse(EPERM), refuse(0), kill_process()};
    return all[below(all.size())];
  }

  ArgRule arg_rule() {
    ArgRule rule{{}, verdict()};
    for (std::uint64_t i = 1 + below(3); i > 0; --i) {
      ArgTest test{.index = static_cast<std::uint8_t>(below(6)), .value = value()};
      switch (below(4)) {
        case 0: test.compare = ArgTest::Compare::at_least; break;
        case 1:
          test.width = ArgWidth::all64;
          test.value |= below(3) << 32U;
          break;
        case 2:
          test.mask = 0xf0000000fULL;
          test.value &= 0xf;
          test.width = ArgWidth::all64;
          break;
        default: break;
      }
      rule.all.push_back(test);
    }
    return rule;
  }

  std::mt19937_64 engine_;
};

TEST(CompileFilter, AgreesWithThePolicyForEveryNumber) {
  std::size_t longest = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    PolicyDice dice(seed);
    const FilterPolicy policy = dice.policy();
    const auto program = compile_filter(policy);
    if (!program) {
      // Too many instructions is the only excuse.
      EXPECT_NE(program.error().message.find("4096"), std::string::npos) << program.error().message;
      continue;
    }
    longest = std::max(longest, program->size());
    for (std::uint32_t number = 0; number <= 600; ++number) {
      for (int round = 0; round < 12; ++round) {
        const SyscallFrame frame = dice.frame(policy, number);
        ASSERT_EQ(run(*program, frame), interpret(policy, frame)) << "number " << number;
      }
    }
  }
  // The draw must have met the case that jumps of 255 do not reach.
  EXPECT_GT(longest, 1000U);
}

TEST(CompileFilter, JudgesForeignEntriesBeforeNumbers) {
  FilterPolicy policy = empty_policy();
  policy.rules = {{39, allow(), {}}};
  const auto program = compile_filter(policy).value();
  EXPECT_EQ(run(program, {AUDIT_ARCH_X86_64, 39, {}}), allow());
  EXPECT_EQ(run(program, {AUDIT_ARCH_I386, 39, {}}), kill_process());
  EXPECT_EQ(run(program, {AUDIT_ARCH_AARCH64, 39, {}}), kill_process());
  EXPECT_EQ(run(program, {AUDIT_ARCH_X86_64, 0x40000000U | 39U, {}}), refuse(EPERM));
  EXPECT_EQ(run(program, {AUDIT_ARCH_X86_64, 0xffffffffU, {}}), refuse(EPERM));
  EXPECT_EQ(run(program, {AUDIT_ARCH_X86_64, 0x80000000U | 39U, {}}), refuse(ENOSYS));
}

TEST(CompileFilter, NarrowTestsIgnoreTheHighHalf) {
  FilterPolicy policy = empty_policy();
  policy.rules = {
      {16, allow(), {{{{.index = 1, .value = 0x5412}}, refuse(EPERM)}}},
      {17, allow(), {{{{.index = 1, .width = ArgWidth::all64, .value = 0x5412}}, refuse(EPERM)}}}};
  const auto program = compile_filter(policy).value();
  const SyscallFrame narrow{AUDIT_ARCH_X86_64, 16, {0, 0x100005412ULL}};
  const SyscallFrame wide{AUDIT_ARCH_X86_64, 17, {0, 0x100005412ULL}};
  EXPECT_EQ(run(program, narrow), refuse(EPERM));
  EXPECT_EQ(run(program, wide), allow());
}

TEST(CompileFilter, RefusesPoliciesThatContradictThemselves) {
  FilterPolicy twice = empty_policy();
  twice.rules = {{1, allow(), {}}, {1, refuse(EPERM), {}}};
  EXPECT_EQ(compile_filter(twice).error().message, "system call 1 has two rules");

  FilterPolicy without_test = empty_policy();
  without_test.rules = {{1, allow(), {{{}, refuse(EPERM)}}}};
  EXPECT_FALSE(compile_filter(without_test));

  FilterPolicy never = empty_policy();
  never.rules = {{1, allow(), {{{{.mask = 0xf0, .value = 0x0f}}, refuse(EPERM)}}}};
  EXPECT_FALSE(compile_filter(never));
}

TEST(CompileFilter, RefusesMoreThanTheKernelTakes) {
  FilterPolicy policy = empty_policy();
  for (std::uint32_t number = 0; number < 500; ++number) {
    FilterRule rule{number, allow(), {}};
    for (std::uint64_t i = 0; i < 6; ++i) rule.rules.push_back({{{.value = i}}, refuse(EPERM)});
    policy.rules.push_back(rule);
  }
  EXPECT_FALSE(compile_filter(policy));
}

TEST(SyscallTable, IsSortedAndNamesAreUnique) {
  for (const Arch arch : {Arch::x86_64, Arch::aarch64}) {
    const auto table = syscall_table(arch);
    EXPECT_TRUE(std::ranges::is_sorted(table, {}, &SyscallEntry::number));
    for (const SyscallEntry& entry : table) {
      EXPECT_EQ(syscall_number(arch, entry.name), entry.number);
      EXPECT_EQ(syscall_name(arch, entry.number), entry.name);
    }
  }
  EXPECT_EQ(syscall_number(Arch::aarch64, "open"), std::nullopt);
  EXPECT_EQ(syscall_name(Arch::x86_64, 400), "");
}

}  // namespace
}  // namespace hutch::isolation
