// The launcher: uid 0 of the zone, single-threaded. It makes the network namespace and the init of
// a sandbox, and clones programs and couriers into a ready one. Every child is the warden's
// (CLONE_PARENT), so the warden alone can wait for it and nobody can stand between an exit status
// and the one who reports it.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "guest/guest.h"
#include "guest/message.h"
#include "isolation/launch.h"

namespace hutch::guest {
namespace {

using isolation::CloneResult;
using isolation::micros_since;

struct Launcher {
  GuestPlan plan;
  int own_network = -1;
  int own_pids = -1;
};

bool told_to_fail([[maybe_unused]] const plan::LaunchRequest& request, [[maybe_unused]] Step step) {
#ifdef HUTCH_TESTING
  return request.fail_step == step;
#else
  return false;
#endif
}

int write_map(long pid, const char* file, const char* text) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%ld/%s", pid, file);
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const ssize_t put = write(fd, text, strlen(text));
  const int error = put < 0 ? errno : 0;
  close(fd);
  return error;
}

// The sandbox's root is one id of the zone and its program another: neither may touch the other,
// and no two sandboxes share one.
int write_maps(long pid, const plan::LaunchRequest& request) {
  char map[96];
  snprintf(map, sizeof map, "0 %u 1\n1000 %u 1\n", request.init_id, request.program_id);
  // "deny" first: groups inherited from us can then never be changed inside.
  int error = write_map(pid, "setgroups", "deny");
  if (error == 0) error = write_map(pid, "gid_map", map);
  if (error == 0) error = write_map(pid, "uid_map", map);
  return error;
}

struct Made {
  CloneResult child;
  plan::LaunchReply reply;
};

bool failed(Made* made, Step step, int error) {
  if (error == 0) return false;
  made->reply.failed_step = step;
  made->reply.sys_errno = error;
  return true;
}

int injected(const plan::LaunchRequest& request, Step step, int error) {
  return told_to_fail(request, step) ? EIO : error;
}

// A fresh network namespace each time, owned by the zone: what an earlier sandbox left in its own
// (counters, TIME_WAIT entries) can never be seen, and the sandbox's root has no power over it.
void make_init(Launcher* launcher, const plan::LaunchRequest& request, const int* fds, Made* made) {
  timespec mark{};
  clock_gettime(CLOCK_MONOTONIC, &mark);
  int error =
      injected(request, Step::network_create, isolation::leave_into_new_namespaces(CLONE_NEWNET));
  if (failed(made, Step::network_create, error)) return;
  error = injected(request, Step::network_loopback, isolation::loopback_up());
  made->reply.network_us = micros_since(&mark);
  if (!failed(made, Step::network_loopback, error)) {
    made->child = isolation::clone_process(CLONE_PARENT | CLONE_NEWUSER | CLONE_NEWPID |
                                           CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS);
    if (made->child.pid == 0) become_init(launcher->plan, request, fds);
    error = injected(request, Step::init_clone, made->child.sys_errno);
    if (!failed(made, Step::init_clone, error)) {
      error = injected(request, Step::id_maps, write_maps(made->child.pid, request));
      failed(made, Step::id_maps, error);
    }
  }
  made->reply.clone_us = micros_since(&mark);
  error = isolation::enter_namespaces(launcher->own_network, CLONE_NEWNET);
  // Staying in a sandbox's network namespace would hand it to the next one.
  if (error != 0) _exit(70);
}

void make_inside(Launcher* launcher, const plan::LaunchRequest& request, const int* fds,
                 Made* made) {
  timespec mark{};
  clock_gettime(CLOCK_MONOTONIC, &mark);
  int error =
      injected(request, Step::program_join_pid, isolation::enter_namespaces(fds[1], CLONE_NEWPID));
  if (!failed(made, Step::program_join_pid, error)) {
    made->child = isolation::clone_process(CLONE_PARENT);
    if (made->child.pid == 0) {
      if (request.kind == plan::LaunchKind::program) {
        become_program(launcher->plan, request, fds);
      }
      become_courier(launcher->plan, request, fds);
    }
    // A pid namespace whose init has died answers ENOMEM: the sandbox is gone, not memory.
    failed(made, Step::program_clone,
           injected(request, Step::program_clone, made->child.sys_errno));
  }
  if (isolation::enter_namespaces(launcher->own_pids, CLONE_NEWPID) != 0) _exit(70);
  made->reply.clone_us = micros_since(&mark);
}

// The failpoint of an answer that is never given: the warden closes while it is awaited.
[[noreturn]] void die_with_warden() {
  pollfd closed{plan::kLauncherSocket, 0, 0};
  poll(&closed, 1, -1);
  _exit(70);
}

void serve(Launcher* launcher, const plan::LaunchRequest& request, int* fds, int fd_count) {
  Made made;
  const int needed = request.kind == plan::LaunchKind::init      ? 1
                     : request.kind == plan::LaunchKind::program ? 5
                                                                 : 3;
  if (fd_count != needed) {
    failed(&made, Step::channel_create, EBADF);
  } else if (request.kind == plan::LaunchKind::init) {
    make_init(launcher, request, fds, &made);
  } else {
    make_inside(launcher, request, fds, &made);
  }
  close_all(fds, fd_count);
  if (request.kind == plan::LaunchKind::program && told_to_fail(request, Step::launcher_answer)) {
    die_with_warden();
  }
  // A child of a failed attempt (its maps could not be written) ends when it sees its socket close;
  // the pidfd goes along so that the warden reaps it.
  if (send_packet(plan::kLauncherSocket, &made.reply, sizeof made.reply, made.child.pidfd) != 0) {
    _exit(70);
  }
  if (made.child.pidfd >= 0) close(made.child.pidfd);
}

}  // namespace

void run_launcher() {
  Launcher launcher;
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  // Whoever started the server may have ignored or blocked signals; sandboxes must not inherit
  // that.
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t nothing;
  sigemptyset(&nothing);
  sigprocmask(SIG_SETMASK, &nothing, nullptr);
  signal(SIGPIPE, SIG_IGN);
  launcher.own_network = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  launcher.own_pids = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
  if (launcher.own_network < 0 || launcher.own_pids < 0) _exit(70);
  if (!map_plan(plan::kLauncherPlan, &launcher.plan)) _exit(70);
  close(plan::kLauncherPlan);
  // Says that everything is in place.
  const plan::LaunchReply ready{};
  if (send_packet(plan::kLauncherSocket, &ready, sizeof ready, -1) != 0) _exit(70);
  for (;;) {
    plan::LaunchRequest request{};
    int fds[kMessageFdsMax];
    int fd_count = 0;
    const long got =
        receive_packet(plan::kLauncherSocket, &request, sizeof request, fds, &fd_count);
    if (got == 0) _exit(0);
    if (got != static_cast<long>(sizeof request)) _exit(70);
    serve(&launcher, request, fds, fd_count);
  }
}

}  // namespace hutch::guest
