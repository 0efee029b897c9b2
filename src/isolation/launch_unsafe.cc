#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "isolation/launch.h"

namespace hutch::isolation {

CloneResult clone_process(std::uint64_t flags) {
  CloneResult result;
  clone_args arguments{};
  arguments.flags = flags | CLONE_PIDFD;
  arguments.pidfd = reinterpret_cast<std::uint64_t>(&result.pidfd);
  // The kernel refuses an exit signal together with CLONE_PARENT.
  arguments.exit_signal = (flags & CLONE_PARENT) != 0 ? 0 : SIGCHLD;
  result.pid = syscall(SYS_clone3, &arguments, sizeof arguments);
  if (result.pid < 0) result.sys_errno = errno;
  return result;
}

long fork_process() { return fork(); }

int enter_namespaces(int fd, int kinds) { return setns(fd, kinds) == 0 ? 0 : errno; }

int leave_into_new_namespaces(int kinds) { return unshare(kinds) == 0 ? 0 : errno; }

int execute_descriptor(int fd, char* const* argv, char* const* envp) {
  syscall(SYS_execveat, fd, "", argv, envp, AT_EMPTY_PATH);
  return errno;
}

int loopback_up() {
  const int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (control < 0) return errno;
  ifreq request{};
  memcpy(request.ifr_name, "lo", 3);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  const int error = ioctl(control, SIOCSIFFLAGS, &request) == 0 ? 0 : errno;
  close(control);
  return error;
}

}  // namespace hutch::isolation
