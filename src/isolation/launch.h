// The only way in which this program makes processes, and the calls that aim them at namespaces.
// Mechanism only: callers say which.
#pragma once

#include <cstdint>

namespace hutch::isolation {

struct CloneResult {
  long pid = -1;   // 0 in the child; < 0 when the call failed
  int pidfd = -1;  // in the parent only
  int sys_errno = 0;
};

// clone3 without a new stack, like fork(2). `flags` are CLONE_* (CLONE_PIDFD is added);
// exit_signal is SIGCHLD, except that CLONE_PARENT takes the caller's own.
// The child shares nothing but what the flags say and runs on a copy of the caller's memory:
// a caller with other threads may only call async-signal-safe functions there.
CloneResult clone_process(std::uint64_t flags);

// fork(2), for the one process that goes on running our own program: the warden. 0 in the child,
// -1 when it failed. The caller must be single-threaded.
long fork_process();

// setns by a pidfd or a namespace descriptor; 0 or errno.
int enter_namespaces(int fd, int kinds);
int leave_into_new_namespaces(int kinds);  // unshare; 0 or errno

// execveat of an open file; returns errno, as it only comes back on failure.
int execute_descriptor(int fd, char* const* argv, char* const* envp);

// Brings `lo` of the current network namespace up; 0 or errno.
int loopback_up();

}  // namespace hutch::isolation
