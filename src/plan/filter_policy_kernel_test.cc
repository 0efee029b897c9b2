// The program's filter in the real kernel: each case is a child that installs it and makes one
// call.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <vector>

#include "base/sys.h"
#include "plan/filter_policy.h"

namespace hutch::plan {
namespace {

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)

constexpr int kNotInstalled = 250;

bool install(const std::vector<sock_filter>& filter) {
  const sock_fprog program{static_cast<unsigned short>(filter.size()),
                           const_cast<sock_filter*>(filter.data())};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

// The wait status of a child that installs `filter` and exits with what `call` returns.
template <class Call>
int status_under(const std::vector<sock_filter>& filter, Call call) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!install(filter)) ::_exit(kNotInstalled);
    ::_exit(call());
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

// The errno of a raw call, 0 when it succeeds.
int error_of(long number, long a = 0, long b = 0, long c = 0) {
  return ::syscall(number, a, b, c, 0, 0, 0) >= 0 ? 0 : sys::last_errno();
}

TEST(ProgramFilterInKernel, GivesTheVerdictsOfTheTable) {
  const auto filter = program_filter().value();
  struct Case {
    long number;
    std::array<long, 3> args;
    int error;
  };
  const std::vector<Case> cases{
      {SYS_getpid, {}, 0},
      {SYS_sync, {}, 0},
      {SYS_mount, {}, EPERM},
      {SYS_unshare, {0x10000000}, EPERM},
      {SYS_bpf, {}, EPERM},
      {SYS_ptrace, {}, EPERM},
      {SYS_keyctl, {}, EPERM},
      {SYS_clone, {0x10000011}, EPERM},
      {SYS_clone, {0x8011}, EPERM},
      {SYS_clone3, {}, ENOSYS},
      {SYS_io_uring_setup, {}, ENOSYS},
      {SYS_socket, {AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0}, 0},
      {SYS_socket, {AF_INET, SOCK_DGRAM, 17}, 0},
      {SYS_socket, {AF_INET, SOCK_STREAM, 262}, EAFNOSUPPORT},
      {SYS_socket, {AF_INET, SOCK_RAW, 1}, EAFNOSUPPORT},
      {SYS_socket, {38, SOCK_SEQPACKET, 0}, EAFNOSUPPORT},
      {SYS_socket, {AF_NETLINK, SOCK_RAW, 6}, EAFNOSUPPORT},
      {SYS_ioctl, {0, 0x100005412}, EPERM},
      {SYS_personality, {0x40000}, EPERM},
      {999, {}, ENOSYS},
      {0x40000000 | SYS_getpid, {}, ENOSYS},
  };
  for (const Case& one : cases) {
    const int status = status_under(
        filter, [&] { return error_of(one.number, one.args[0], one.args[1], one.args[2]); });
    ASSERT_TRUE(WIFEXITED(status)) << one.number;
    EXPECT_EQ(WEXITSTATUS(status), one.error) << one.number << "(" << one.args[0] << ")";
  }
}

TEST(ProgramFilterInKernel, EndsAProcessThatEntersByThe32BitDoor) {
  const int status = status_under(program_filter().value(), [] {
    int result = 20;  // getpid of the 32-bit table
    asm volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
    return 0;
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGSYS);
}

TEST(ProgramFilterInKernel, LetsProcessesBeMadeAndReaped) {
  const int status = status_under(program_filter().value(), [] {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(7);
    int inner = 0;
    if (child < 0 || ::waitpid(child, &inner, 0) != child) return 1;
    return WIFEXITED(inner) && WEXITSTATUS(inner) == 7 ? 0 : 2;
  });
  EXPECT_EQ(status, 0);
}

TEST(ProgramFilterInKernel, EveryFilterInstalls) {
  for (const auto& filter : {program_filter(), init_filter(), courier_filter()}) {
    EXPECT_EQ(status_under(*filter, [] { return 0; }), 0);
  }
}

#endif

}  // namespace
}  // namespace hutch::plan
