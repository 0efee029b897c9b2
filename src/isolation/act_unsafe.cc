#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/mount.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "isolation/act.h"

namespace hutch::isolation {
namespace {

constexpr int kFirstFreeDescriptor = 64;

int result_of(long value) { return value < 0 ? errno : 0; }

int await_go(int report) {
  char byte = 0;
  ssize_t got = 0;
  do {
    got = read(report, &byte, 1);
  } while (got < 0 && errno == EINTR);
  if (got == 1) return 0;
  return got < 0 ? errno : EPIPE;
}

int set_identity(gid_t gid, uid_t uid) {
  // A group left over from the process that cloned us would open files of the host.
  if (getgroups(0, nullptr) != 0 && setgroups(0, nullptr) != 0) return errno;
  if (setresgid(gid, gid, gid) != 0) return errno;
  return result_of(setresuid(uid, uid, uid));
}

int bind(const RawAction& action, bool optional) {
  const unsigned long flags = action.a == 1 ? MS_BIND | MS_REC : MS_BIND;
  if (mount(action.s, action.t, nullptr, flags, nullptr) == 0) return 0;
  return optional && errno == ENOENT ? 0 : errno;
}

int bind_readonly(const char* target) {
  if (mount(target, target, nullptr, MS_BIND | MS_REC, nullptr) != 0) {
    return errno == ENOENT ? 0 : errno;
  }
  constexpr unsigned long kFlags =
      MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
  return result_of(mount(nullptr, target, nullptr, kFlags, nullptr));
}

int remount_readonly(const char* target) {
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  return result_of(syscall(SYS_mount_setattr, AT_FDCWD, target, 0, &attributes, sizeof attributes));
}

int make_directory(const RawAction& action) {
  if (mkdir(action.t, static_cast<mode_t>(action.a)) != 0) return errno;
  // mkdir obeys the umask; the mode is what the plan says.
  if (chmod(action.t, static_cast<mode_t>(action.a)) != 0) return errno;
  return result_of(chown(action.t, static_cast<uid_t>(action.b), static_cast<gid_t>(action.c)));
}

int write_control(const char* path, const char* text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const ssize_t put = write(fd, text, strlen(text));
  const int error = put < 0 ? errno : 0;
  close(fd);
  return error;
}

int enter_root(const char* target) {
  if (chdir(target) != 0) return errno;
  return result_of(syscall(SYS_pivot_root, ".", "."));
}

int detach_old_root() {
  if (umount2(".", MNT_DETACH) != 0) return errno;
  return result_of(chdir("/"));
}

// First everything up and out of the way, then down to the final numbers: no order of sources can
// overwrite one that is still needed.
int place_descriptors(ActContext* context, unsigned close_from) {
  int high[kPlacedMax];
  for (int i = 0; i < context->placed_count; ++i) {
    const int from = context->placed[i].from;
    high[i] =
        fcntl(from == kKeptDirectory ? context->kept : from, F_DUPFD_CLOEXEC, kFirstFreeDescriptor);
    if (high[i] < 0) return errno;
  }
  if (context->null_stdin) {
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0) return errno;
    const int last = context->null_output ? 2 : 0;
    for (int to = 0; to <= last; ++to) {
      if (null != to && dup2(null, to) < 0) return errno;
    }
  }
  for (int i = 0; i < context->placed_count; ++i) {
    const int flags = context->placed[i].close_on_exec ? O_CLOEXEC : 0;
    if (dup3(high[i], context->placed[i].to, flags) < 0) return errno;
  }
  for (int i = 0; i < context->placed_count; ++i) {
    if (context->placed[i].from == context->report) {
      context->report = context->placed[i].to;
      break;
    }
  }
  return result_of(syscall(SYS_close_range, close_from, ~0U, 0));
}

int drop_bounding_set() {
  for (int capability = 0; capability < 64; ++capability) {
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0) continue;
    return errno == EINVAL && capability > CAP_CHECKPOINT_RESTORE ? 0 : errno;
  }
  return 0;
}

int drop_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  if (syscall(SYS_capset, &header, data) != 0) return errno;
  return result_of(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0));
}

// Any descriptor from `first` on, the one used for looking excepted.
bool has_stray_descriptor(int first) {
  const int directory = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return true;
  alignas(8) char buffer[2048];
  bool stray = false;
  for (;;) {
    const long got = syscall(SYS_getdents64, directory, buffer, sizeof buffer);
    if (got <= 0) {
      stray = stray || got < 0;
      break;
    }
    for (long at = 0; at < got;) {
      unsigned short size = 0;
      memcpy(&size, buffer + at + 16, sizeof size);
      const char* name = buffer + at + 19;
      int number = 0;
      for (const char* digit = name; *digit >= '0' && *digit <= '9'; ++digit) {
        number = number * 10 + (*digit - '0');
      }
      if (*name != '.' && number >= first && number != directory) stray = true;
      at += size;
    }
  }
  close(directory);
  return stray;
}

int self_check(uid_t identity, int first_descriptor) {
  uid_t real = 0;
  uid_t effective = 0;
  uid_t saved = 0;
  if (getresuid(&real, &effective, &saved) != 0) return errno;
  if (real != identity || effective != identity || saved != identity) return EPERM;
  if (getgroups(0, nullptr) != 0) return EPERM;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  if (syscall(SYS_capget, &header, data) != 0) return errno;
  for (const auto& part : data) {
    if ((part.effective | part.permitted | part.inheritable) != 0) return EPERM;
  }
  for (int capability = 0; capability <= CAP_CHECKPOINT_RESTORE; ++capability) {
    if (prctl(PR_CAPBSET_READ, capability, 0, 0, 0) != 0) return EPERM;
  }
  if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) return EPERM;
  return has_stray_descriptor(first_descriptor) ? EBADF : 0;
}

int set_affinity(const ActContext& context) {
  return result_of(syscall(SYS_sched_setaffinity, 0, sizeof context.cpu_mask, context.cpu_mask));
}

int set_rlimit(const RawAction& action) {
  const rlimit limit{static_cast<rlim_t>(action.b), static_cast<rlim_t>(action.c)};
  return result_of(setrlimit(static_cast<__rlimit_resource>(action.a), &limit));
}

int join_namespaces(int init_pidfd) {
  constexpr int kAll =
      CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET | CLONE_NEWCGROUP;
  return result_of(setns(init_pidfd, kAll));
}

int act_mount(const RawAction& action) {
  switch (action.op) {
    case Op::mount_tmpfs: {
      const auto flags = static_cast<unsigned long>(action.a);
      return result_of(mount("tmpfs", action.t, "tmpfs", flags, action.s));
    }
    case Op::mount_proc: {
      constexpr unsigned long kFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
      return result_of(mount("proc", action.t, "proc", kFlags, action.s));
    }
    case Op::make_private:
      return result_of(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr));
    case Op::bind: return bind(action, false);
    case Op::bind_optional: return bind(action, true);
    case Op::bind_readonly: return bind_readonly(action.t);
    case Op::remount_readonly: return remount_readonly(action.t);
    case Op::enter_root: return enter_root(action.t);
    case Op::detach_old_root: return detach_old_root();
    default: return ENOSYS;
  }
}

int act_identity(const RawAction& action, ActContext* context) {
  switch (action.op) {
    case Op::set_identity:
      return set_identity(static_cast<gid_t>(action.a), static_cast<uid_t>(action.b));
    case Op::drop_bounding_set: return drop_bounding_set();
    case Op::drop_capabilities: return drop_capabilities();
    case Op::no_new_privs: return result_of(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    case Op::set_dumpable: return result_of(prctl(PR_SET_DUMPABLE, action.a, 0, 0, 0));
    case Op::self_check:
      return self_check(static_cast<uid_t>(action.a), static_cast<int>(action.b));
    case Op::install_filter:
      return result_of(
          syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &context->filters[action.a]));
    default: return act_mount(action);
  }
}

int open_directory(const char* path, ActContext* context) {
  context->kept = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return result_of(context->kept);
}

void note_timing(ActReport* report, Step step, std::uint32_t micros) {
  if (report->count > 0 && report->steps[report->count - 1] == step) {
    report->micros[report->count - 1] += micros;
  } else if (report->count < kTimingsMax) {
    report->steps[report->count] = step;
    report->micros[report->count] = micros;
    ++report->count;
  }
}

}  // namespace

// Again until nobody is left: the namespace's init may take a moment to reap what was killed.
int kill_others() {
  constexpr int kRoundsMax = 20'000;
  for (int round = 0; round < kRoundsMax; ++round) {
    if (kill(-1, SIGKILL) != 0) return errno == ESRCH ? 0 : errno;
    const timespec pause{0, round < 50 ? 50'000 : 500'000};
    nanosleep(&pause, nullptr);
  }
  return ETIMEDOUT;
}

std::uint32_t micros_since(timespec* mark) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const long nanos = (now.tv_sec - mark->tv_sec) * 1'000'000'000L + (now.tv_nsec - mark->tv_nsec);
  *mark = now;
  return static_cast<std::uint32_t>(nanos / 1000);
}

int act(const RawAction& action, ActContext* context) {
#ifdef HUTCH_TESTING
  if (context->fail_step != Step::none && context->fail_step == action.step) return EIO;
#endif
  switch (action.op) {
    case Op::session: return result_of(setsid());
    case Op::await_go: return await_go(context->report);
    case Op::unshare: return result_of(unshare(static_cast<int>(action.a)));
    case Op::make_directory: return make_directory(action);
    case Op::make_symlink: return result_of(symlink(action.s, action.t));
    case Op::set_hostname: return result_of(sethostname(action.s, strlen(action.s)));
    case Op::write_control: return write_control(action.t, action.s);
    case Op::change_directory: return result_of(chdir(action.t));
    case Op::open_directory: return open_directory(action.t, context);
    case Op::place_descriptors: return place_descriptors(context, static_cast<unsigned>(action.a));
    case Op::set_rlimit: return set_rlimit(action);
    case Op::set_affinity: return set_affinity(*context);
    case Op::join_session_keyring:
      return result_of(syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr));
    case Op::set_umask: umask(static_cast<mode_t>(action.a)); return 0;
    case Op::join_namespaces: return join_namespaces(context->init_pidfd);
    case Op::kill_others: return context->clears ? kill_others() : 0;
    case Op::execute: return result_of(execve(action.s, context->argv, context->envp));
    default: return act_identity(action, context);
  }
}

bool act_all(const char* block, std::size_t size, ActContext* context, ActReport* report) {
  timespec mark{};
  clock_gettime(CLOCK_MONOTONIC, &mark);
  RawAction action;
  for (std::size_t offset = 0; next_action(block, size, &offset, &action);) {
    const int error = act(action, context);
    if (error != 0) {
      report->failed_step = action.step;
      report->sys_errno = error;
      return false;
    }
    note_timing(report, action.step, micros_since(&mark));
  }
  return true;
}

}  // namespace hutch::isolation
