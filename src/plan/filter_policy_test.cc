#include "plan/filter_policy.h"

#include <gtest/gtest.h>
#include <linux/audit.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <sstream>

#include "base/sys.h"
#include "isolation/bpf_eval.h"

namespace hutch::plan {
namespace {

using isolation::Arch;
using isolation::FilterPolicy;
using isolation::Verdict;

constexpr std::uint32_t kX32 = 0x40000000;

class Judge {
 public:
  explicit Judge(const FilterPolicy& policy)
      : policy_(policy), program_(isolation::compile_filter(policy).value()) {}

  Verdict frame(std::uint32_t token, std::uint32_t number,
                std::array<std::uint64_t, 6> args) const {
    seccomp_data data{};
    data.arch = token;
    data.nr = static_cast<int>(number);
    std::ranges::copy(args, std::begin(data.args));
    return isolation::verdict_of(isolation::run_filter(program_, data).value()).value();
  }

  Verdict number(std::uint32_t number, std::array<std::uint64_t, 6> args = {}) const {
    return frame(isolation::arch_token(policy_.arch), number, args);
  }

  Verdict call(std::string_view name, std::array<std::uint64_t, 6> args = {}) const {
    return number(isolation::syscall_number(policy_.arch, name).value(), args);
  }

  std::size_t size() const { return program_.size(); }
  const FilterPolicy& policy() const { return policy_; }

 private:
  FilterPolicy policy_;
  std::vector<sock_filter> program_;
};

Judge program_judge() { return Judge(program_policy(Arch::x86_64)); }

constexpr Verdict kYes = isolation::allow();
constexpr Verdict kNo = isolation::refuse(EPERM);
constexpr Verdict kAbsent = isolation::refuse(ENOSYS);
constexpr Verdict kNoFamily = isolation::refuse(EAFNOSUPPORT);

std::string pad(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size() + 1), ' ');
  return text;
}

// Every number with its verdict for each entry into the kernel, as the compiled program gives it.
std::string verdict_list(const Judge& judge,
                         std::span<const std::pair<std::string, std::uint64_t>> entries) {
  const FilterPolicy& policy = judge.policy();
  std::map<std::uint32_t, const isolation::FilterRule*> rules;
  for (const auto& rule : policy.rules) rules[rule.number] = &rule;
  std::ostringstream out;
  out << "# Verdicts of the program's filter. Written by the tests under UPDATE_GOLDEN=1;\n"
         "# a line that changes is a change of what a sandbox may do.\n";
  const auto put = [&](std::string line) {
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << "\n";
  };
  std::string head = pad("#", 5) + pad("call", 26);
  for (const auto& entry : entries) head += pad(entry.first, 14);
  put(head);
  const std::uint32_t last = isolation::syscall_table(policy.arch).back().number;
  for (std::uint32_t number = 0; number <= last + 9; ++number) {
    const auto found = rules.find(number);
    const bool by_arguments = found != rules.end() && !found->second->rules.empty();
    std::string name(isolation::syscall_name(policy.arch, number));
    std::string line = pad(std::to_string(number), 5) + pad(name.empty() ? "-" : name, 26);
    for (const auto& [label, where] : entries) {
      const auto token = static_cast<std::uint32_t>(where);
      const auto bits = static_cast<std::uint32_t>(where >> 32U);
      const bool native = token == isolation::arch_token(policy.arch) && bits == 0;
      line += pad(native && by_arguments
                      ? "by-arguments"
                      : isolation::verdict_text(judge.frame(token, number | bits, {})),
                  14);
    }
    put(line);
    if (!by_arguments) continue;
    for (const auto& rule : found->second->rules) out << "       " << rule_text(rule) << "\n";
    out << "       otherwise: " << isolation::verdict_text(found->second->otherwise) << "\n";
  }
  return std::move(out).str();
}

void compare_with_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(HUTCH_SOURCE_DIR) + "/tests/seccomp/" + name;
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(sys::write_file_atomic(path, text, 0644));
  }
  const auto golden = sys::read_file(path, 1U << 20U);
  ASSERT_TRUE(golden) << describe(golden.error());
  EXPECT_TRUE(*golden == text) << "the verdicts differ from " << path
                               << "; if that is meant: UPDATE_GOLDEN=1, and read the difference";
}

TEST(ProgramFilter, VerdictsAreTheCheckedInOnes) {
  const std::array<std::pair<std::string, std::uint64_t>, 3> entries{{
      {"x86-64", AUDIT_ARCH_X86_64},
      {"x32", (std::uint64_t{kX32} << 32U) | AUDIT_ARCH_X86_64},
      {"i386", AUDIT_ARCH_I386},
  }};
  compare_with_golden("verdicts-x86_64.txt", verdict_list(program_judge(), entries));
}

TEST(ProgramFilter, VerdictsOnAarch64AreTheCheckedInOnes) {
  const std::array<std::pair<std::string, std::uint64_t>, 2> entries{{
      {"aarch64", AUDIT_ARCH_AARCH64},
      {"arm", AUDIT_ARCH_ARM},
  }};
  compare_with_golden("verdicts-aarch64.txt",
                      verdict_list(Judge(program_policy(Arch::aarch64)), entries));
}

TEST(ProgramFilter, EveryCallOfTheKernelIsDecidedOnceWithAReason) {
  for (const Arch arch : {Arch::x86_64, Arch::aarch64}) {
    std::map<std::uint32_t, int> decided;
    for (const auto& rule : program_policy(arch).rules) ++decided[rule.number];
    for (const auto& entry : isolation::syscall_table(arch)) {
      EXPECT_EQ(decided[entry.number], 1) << entry.name;
    }
  }
  for (const PolicyLine& line : program_lines()) {
    EXPECT_FALSE(line.reason.empty()) << line.calls;
    std::istringstream words{std::string(line.calls)};
    for (std::string name; words >> name;) {
      EXPECT_TRUE(isolation::syscall_number(Arch::x86_64, name) ||
                  isolation::syscall_number(Arch::aarch64, name))
          << name << " is no system call";
    }
  }
}

TEST(ProgramFilter, AgreesWithItsPolicyOnTheArgumentsThatMatter) {
  const std::array<std::uint64_t, 16> values{0,  1,  2,    3,    5,    6,      10,         16,
                                             17, 64, 1024, 1040, 4096, 0x5412, 0x80000001, ~0ULL};
  for (const Arch arch : {Arch::x86_64, Arch::aarch64}) {
    const Judge judge(program_policy(arch));
    for (std::uint32_t number = 0; number <= 600; ++number) {
      for (const std::uint64_t a : values) {
        for (const std::uint64_t b : values) {
          const std::array<std::uint64_t, 6> args{a, b, a ^ b, 0, 0, 0};
          const isolation::SyscallFrame frame{
              isolation::arch_token(arch), number, {a, b, a ^ b, 0, 0, 0}};
          ASSERT_EQ(judge.number(number, args), isolation::interpret(judge.policy(), frame));
        }
      }
    }
  }
}

TEST(ProgramFilter, StaysShort) {
  // The kernel takes 4096; time to install grows with the length, and each sandbox pays it.
  EXPECT_LT(program_judge().size(), 450U);
  RecordProperty("instructions", static_cast<int>(program_judge().size()));
}

TEST(ProgramFilter, RefusesDangerousCallsWhateverTheirArguments) {
  const Judge judge = program_judge();
  for (const std::uint32_t number :
       {425, 426, 427, 321, 323, 298, 248, 249, 250, 165, 166, 155, 161, 308, 175, 313, 176,
        246, 320, 304, 303, 430, 431, 432, 433, 428, 429, 442, 467, 438, 310, 311, 440, 312,
        101, 167, 168, 169, 163, 179, 443, 103, 172, 173, 300, 301, 164, 227, 159, 305, 170,
        171, 153, 154, 134, 279, 256, 237, 238, 272, 457, 458, 206, 275, 276, 278, 435}) {
    for (const std::uint64_t arg : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
      const Verdict verdict = judge.number(number, {arg, arg, arg, arg, arg, arg});
      EXPECT_TRUE(verdict == kNo || verdict == kAbsent) << number;
    }
  }
}

TEST(ProgramFilter, AnswersAbsentWhereLibrariesFallBack) {
  const Judge judge = program_judge();
  for (const char* name : {"clone3", "io_uring_setup", "splice", "tee", "vmsplice", "io_setup"}) {
    EXPECT_EQ(judge.call(name), kAbsent) << name;
  }
  for (const std::uint32_t number : {400U, 472U, 500U, 10000U, 0x3fffffffU}) {
    EXPECT_EQ(judge.number(number), kAbsent) << number;
  }
}

TEST(ProgramFilter, OpensOnlyTheSocketsThatProgramsUse) {
  const Judge judge = program_judge();
  const auto allowed = [](std::uint64_t family, std::uint64_t type, std::uint64_t protocol) {
    if (family == 1) return (type == 1 || type == 2 || type == 5) && protocol == 0;
    if (family == 2 || family == 10) {
      return (type == 1 && (protocol == 0 || protocol == 6)) ||
             (type == 2 && (protocol == 0 || protocol == 17));
    }
    return family == 16 && (type == 2 || type == 3) && protocol == 0;
  };
  for (std::uint64_t family = 0; family < 64; ++family) {
    for (std::uint64_t type = 0; type < 16; ++type) {
      for (const std::uint64_t protocol : {0, 1, 2, 6, 9, 12, 15, 17, 58, 132, 136, 255, 262}) {
        const Verdict want = allowed(family, type, protocol) ? kYes : kNoFamily;
        for (const std::uint64_t flags : {0U, 02000000U, 02004000U}) {
          ASSERT_EQ(judge.call("socket", {family, type | flags, protocol}), want)
              << family << " " << type << " " << protocol;
          // The kernel looks at the low halves only, so a high one must change nothing.
          const std::uint64_t high = 1ULL << 32U;
          ASSERT_EQ(judge.call("socket", {family | high, type | flags | high, protocol | high}),
                    want);
        }
        const bool pair = family == 1 && allowed(family, type, protocol);
        ASSERT_EQ(judge.call("socketpair", {family, type, protocol}), pair ? kYes : kNoFamily);
      }
    }
  }
}

TEST(ProgramFilter, CloneMakesProcessesAndThreadsOnly) {
  const Judge judge = program_judge();
  constexpr std::uint64_t kFork = 0x01200011;    // as libc's fork
  constexpr std::uint64_t kThread = 0x003d0f00;  // as pthread_create
  constexpr std::uint64_t kVfork = 0x00004111;   // as posix_spawn
  for (const std::uint64_t flags : {kFork, kThread, kVfork}) {
    EXPECT_EQ(judge.call("clone", {flags}), kYes);
    for (const std::uint64_t bad : {0x20000U, 0x8000U, 0x2000000U, 0x4000000U, 0x8000000U,
                                    0x10000000U, 0x20000000U, 0x40000000U}) {
      EXPECT_EQ(judge.call("clone", {flags | bad}), kNo) << bad;
    }
  }
  // The exit signal's low bits include what is CLONE_NEWTIME elsewhere.
  EXPECT_EQ(judge.call("clone", {0x80}), kYes);
}

TEST(ProgramFilter, ShutsOptionsThatOpenOtherSubsystems) {
  const Judge judge = program_judge();
  for (const auto& [level, option] :
       std::vector<std::pair<std::uint64_t, std::uint64_t>>{{6, 31},
                                                            {17, 100},
                                                            {1, 26},
                                                            {1, 50},
                                                            {1, 51},
                                                            {1, 52},
                                                            {0, 64},
                                                            {0, 96},
                                                            {0, 128},
                                                            {41, 64},
                                                            {41, 0xffffffff}}) {
    EXPECT_EQ(judge.call("setsockopt", {3, level, option}), kNo) << level << " " << option;
    EXPECT_EQ(judge.call("setsockopt", {3, level | (1ULL << 40U), option}), kNo);
  }
  for (const auto& [level, option] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {1, 2}, {1, 9}, {6, 1}, {0, 1}, {41, 26}}) {
    EXPECT_EQ(judge.call("setsockopt", {3, level, option}), kYes) << level << " " << option;
  }
}

TEST(ProgramFilter, LooksAtArgumentsWhereItMust) {
  const Judge judge = program_judge();
  const std::uint64_t high = 1ULL << 32U;
  for (const std::uint64_t request : {0x5412U, 0x541cU, 0x541dU}) {
    EXPECT_EQ(judge.call("ioctl", {0, request}), kNo);
    EXPECT_EQ(judge.call("ioctl", {0, request | high}), kNo);
  }
  EXPECT_EQ(judge.call("ioctl", {0, 0x5401}), kYes);
  EXPECT_EQ(judge.call("personality", {0xffffffff}), kYes);
  EXPECT_EQ(judge.call("personality", {0x0040000}), kNo);
  EXPECT_EQ(judge.call("fcntl", {3, 1024, 1}), kNo);
  EXPECT_EQ(judge.call("fcntl", {3, 1026, 1}), kNo);
  EXPECT_EQ(judge.call("fcntl", {3, 6, 0}), kYes);
  EXPECT_EQ(judge.call("mknod", {0, 0010644}), kYes);
  EXPECT_EQ(judge.call("mknod", {0, 0644}), kYes);
  EXPECT_EQ(judge.call("mknod", {0, 0020644}), kNo);
  EXPECT_EQ(judge.call("mknodat", {0, 0, 0060644}), kNo);
  EXPECT_EQ(judge.call("mknodat", {0, 0, 0100644}), kYes);
  EXPECT_EQ(judge.call("prctl", {35}), kNo);
  EXPECT_EQ(judge.call("prctl", {15}), kYes);
}

TEST(ProgramFilter, TakesNoHugePagesOfTheHost) {
  const Judge judge = program_judge();
  const Verdict none = isolation::refuse(ENOMEM);
  EXPECT_EQ(judge.call("mmap", {0, 1 << 21, 3, 0x22 | 0x40000}), none);
  EXPECT_EQ(judge.call("mmap", {0, 1 << 30, 3, 0x22 | 0x40000 | (30U << 26U)}), none);
  EXPECT_EQ(judge.call("mmap", {0, 1 << 21, 3, 0x22}), kYes);
  EXPECT_EQ(judge.call("memfd_create", {0, 4}), none);
  EXPECT_EQ(judge.call("memfd_create", {0, 3}), kYes);
  EXPECT_EQ(judge.call("shmget", {0, 1 << 21, 01600 | 04000}), none);
  EXPECT_EQ(judge.call("shmget", {0, 1 << 21, 01600}), kYes);
}

// Every inode of the image is shared: what tells about its use tells about other sandboxes.
TEST(ProgramFilter, LeavesTheSharedImageAlone) {
  for (const Arch arch : {Arch::x86_64, Arch::aarch64}) {
    const Judge judge(program_policy(arch));
    EXPECT_EQ(judge.call("inotify_init1"), kAbsent);
    EXPECT_EQ(judge.call("inotify_add_watch"), kAbsent);
    EXPECT_EQ(judge.call("fanotify_init"), kNo);
    EXPECT_EQ(judge.call("fadvise64", {3, 0, 0, 4}), isolation::refuse(0));
  }
}

TEST(InitFilter, HoldsALoopAndNothingElse) {
  const Judge judge(init_policy(Arch::x86_64));
  for (const char* name : {"recvmsg", "poll", "wait4", "kill", "exit_group", "close", "write"}) {
    EXPECT_EQ(judge.call(name), kYes) << name;
  }
  for (const char* name : {"open", "openat", "execve", "clone", "fork", "socket", "mount", "ptrace",
                           "mmap", "unshare", "setns", "ioctl"}) {
    EXPECT_EQ(judge.call(name), kNo) << name;
  }
  EXPECT_EQ(judge.number(500), kAbsent);
  EXPECT_EQ(judge.frame(AUDIT_ARCH_I386, 1, {}), isolation::kill_process());
}

TEST(CourierFilter, MovesFilesAndNothingElse) {
  const Judge judge(courier_policy(Arch::x86_64));
  for (const char* name :
       {"openat2", "mkdirat", "getdents64", "fstat", "read", "write", "kill", "fchmodat"}) {
    EXPECT_EQ(judge.call(name), kYes) << name;
  }
  for (const char* name : {"execve", "execveat", "clone", "fork", "socket", "connect", "mount",
                           "ptrace", "ioctl", "unshare", "mknodat", "symlinkat", "linkat"}) {
    EXPECT_EQ(judge.call(name), kNo) << name;
  }
}

TEST(Filters, CompileForThisMachine) {
  EXPECT_TRUE(program_filter());
  EXPECT_TRUE(init_filter());
  EXPECT_TRUE(courier_filter());
}

}  // namespace
}  // namespace hutch::plan
