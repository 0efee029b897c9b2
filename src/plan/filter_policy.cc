#include "plan/filter_policy.h"

#include <linux/net.h>
#include <linux/netlink.h>
#include <linux/prctl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <string>

namespace hutch::plan {
namespace {

using isolation::allow;
using isolation::Arch;
using isolation::ArgRule;
using isolation::ArgTest;
using isolation::FilterPolicy;
using isolation::FilterRule;
using isolation::refuse;
using isolation::Verdict;

constexpr Verdict kAllow = allow();
constexpr Verdict kDeny = refuse(EPERM);     // says "not for you": programs report it and go on
constexpr Verdict kAbsent = refuse(ENOSYS);  // says "not in this kernel": libraries fall back
constexpr Verdict kNothing = refuse(0);      // succeeds without doing anything
constexpr Verdict kNoFamily = refuse(EAFNOSUPPORT);

// clang-format off
// Every call of the kernel stands here exactly once; a test holds the table against the list of
// numbers, so that none gets in without a decision. Calls with argument rules (below) stand here
// with the verdict that holds when no rule matches.
constexpr auto kProgram = std::to_array<PolicyLine>({
  // Descriptors and files.
  {kAllow, "plain input and output",
   "read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek"},
  {kAllow, "its own descriptors",
   "close close_range dup dup2 dup3 pipe pipe2 fsync fdatasync syncfs sync_file_range"},
  {kAllow, "files: what can be opened is decided by mounts and modes",
   "open openat openat2 creat truncate ftruncate fallocate readahead flock"},
  {kNothing, "advice only; it would push files of the shared image out of the host's memory",
   "fadvise64"},
  {kAllow, "looking at files",
   "stat fstat lstat newfstatat statx statfs fstatfs access faccessat faccessat2"},
  {kAllow, "directories",
   "getdents getdents64 getcwd chdir fchdir readlink readlinkat umask"},
  {kAllow, "names: every writable place belongs to the sandbox",
   "rename renameat renameat2 mkdir mkdirat rmdir link linkat unlink unlinkat symlink symlinkat"},
  {kAllow, "modes and owners: set-id bits do nothing on nosuid mounts",
   "chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat"},
  {kAllow, "times of files",
   "utime utimes futimesat utimensat"},
  {kAllow, "copying a file asks for its attributes; they count against the scratch space",
   "setxattr lsetxattr fsetxattr setxattrat getxattr lgetxattr fgetxattr getxattrat listxattr "
   "llistxattr flistxattr listxattrat removexattr lremovexattr fremovexattr removexattrat"},
  {kAllow, "how Python and coreutils copy files",
   "sendfile copy_file_range"},
  {kAbsent, "the image's files are everybody's: watching them shows what other sandboxes read",
   "inotify_init inotify_init1 inotify_add_watch inotify_rm_watch"},
  {kDeny, "device nodes; pipes and plain files pass by rule",
   "mknod mknodat"},
  {kAllow, "flags and locks; leases and notifications are refused by rule",
   "fcntl"},
  {kAllow, "too many to list, and no device is in reach; typing into a terminal is refused by rule",
   "ioctl"},
  {kNothing, "would flush every disk of the host; all a sandbox writes is memory",
   "sync"},
  {kAbsent, "carried Dirty Pipe and its kin; callers fall back to read and write",
   "splice tee vmsplice"},
  {kAbsent, "contexts are counted for the whole host: one sandbox could take them all",
   "io_setup io_destroy io_submit io_cancel io_getevents io_pgetevents"},
  {kAbsent, "opens files and sockets unseen by this filter",
   "io_uring_setup io_uring_enter io_uring_register"},
  {kDeny, "opens files past every directory's rights",
   "name_to_handle_at open_by_handle_at"},
  {kDeny, "watches whole mounts",
   "fanotify_init fanotify_mark"},
  {kAbsent, "too new for anybody to depend on",
   "cachestat file_getattr file_setattr"},
  // Waiting and events.
  {kAllow, "event loops",
   "poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait "
   "epoll_pwait2"},
  {kAllow, "event loops",
   "eventfd eventfd2 signalfd signalfd4 timerfd_create timerfd_settime timerfd_gettime"},
  {kAllow, "locks of threads",
   "futex futex_waitv futex_wake futex_wait futex_requeue set_robust_list get_robust_list"},
  {kAllow, "timers",
   "nanosleep clock_nanosleep pause alarm getitimer setitimer timer_create timer_settime "
   "timer_gettime timer_getoverrun timer_delete"},
  {kAllow, "reading clocks",
   "time gettimeofday clock_gettime clock_getres times"},
  {kDeny, "the host's clocks",
   "settimeofday clock_settime adjtimex clock_adjtime"},
  // Memory.
  {kAllow, "its own memory, within the memory limit; the host's huge pages are refused by rule",
   "brk mmap munmap mremap mprotect madvise msync mincore membarrier memfd_create mseal"},
  {kAllow, "bounded by RLIMIT_MEMLOCK",
   "mlock mlock2 munlock mlockall munlockall"},
  {kAllow, "used by just-in-time compilers",
   "pkey_alloc pkey_free pkey_mprotect"},
  {kAllow, "System V objects of its own ipc namespace",
   "shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl"},
  {kAllow, "message queues of its own ipc namespace",
   "mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr"},
  {kDeny, "placement of memory; libnuma then sees a machine without nodes",
   "mbind set_mempolicy get_mempolicy set_mempolicy_home_node migrate_pages move_pages"},
  {kDeny, "obsolete, nobody calls it",
   "remap_file_pages"},
  {kAbsent, "libc then runs without shadow stacks",
   "map_shadow_stack"},
  {kDeny, "memory that the kernel itself cannot take back",
   "memfd_secret"},
  {kDeny, "stops the kernel in the middle of a copy: the tool of most race exploits",
   "userfaultfd"},
  // Processes and threads.
  {kAllow, "processes and threads, within the process limit",
   "fork vfork execve execveat exit exit_group wait4 waitid set_tid_address gettid getpid getppid "
   "rseq restart_syscall"},
  {kDeny, "processes and threads pass by rule; new namespaces and children of init's parent do not",
   "clone"},
  {kAbsent, "its flags are behind a pointer, unseen here; libc falls back to clone",
   "clone3"},
  {kDeny, "a user namespace hands out capabilities over the network stack",
   "unshare setns"},
  {kAllow, "the pid namespace holds only its own processes, and init is another user",
   "kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_open pidfd_send_signal"},
  {kAllow, "signal handling",
   "rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigsuspend "
   "sigaltstack"},
  {kAllow, "process groups; shells need them",
   "setpgid getpgid getpgrp setsid getsid"},
  {kAllow, "scheduling among its own; real-time classes are shut by RLIMIT_RTPRIO",
   "sched_yield sched_setparam sched_getparam sched_setscheduler sched_getscheduler sched_setattr "
   "sched_getattr sched_get_priority_max sched_get_priority_min sched_rr_get_interval "
   "sched_setaffinity sched_getaffinity getpriority setpriority ioprio_set ioprio_get getcpu"},
  {kAllow, "limits can only be lowered",
   "getrlimit setrlimit prlimit64 getrusage sysinfo uname"},
  {kAllow, "names of threads, death signals; two options are refused by rule",
   "prctl"},
  {kAllow, "thread-local storage",
   "arch_prctl"},
  {kAllow, "randomness",
   "getrandom"},
  {kAllow, "a program may shut itself in further",
   "seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self"},
  {kDeny, "reaching into other processes",
   "ptrace process_vm_readv process_vm_writev process_madvise process_mrelease pidfd_getfd kcmp"},
  {kDeny, "harmless values pass by rule; turning address randomization off does not",
   "personality"},
  {kDeny, "segments of 32-bit programs",
   "modify_ldt set_thread_area get_thread_area"},
  {kDeny, "only the kernel's own trampolines call them",
   "uretprobe uprobe"},
  {kAbsent, "too new for anybody to depend on",
   "rseq_slice_yield"},
  // Identity.
  {kAllow, "who am I",
   "getuid getgid geteuid getegid getresuid getresgid getgroups capget"},
  {kAllow, "without a capability these only repeat what is",
   "setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid setgroups capset"},
  {kDeny, "keyrings are shared by user, not by namespace",
   "add_key request_key keyctl"},
  {kAbsent, "nobody depends on them",
   "lsm_get_self_attr lsm_set_self_attr lsm_list_modules"},
  // Network.
  {kNoFamily, "each family is a kernel subsystem; the few that programs use pass by rule",
   "socket socketpair"},
  {kAllow, "ordinary options; the doors to filters, tables and upper protocols are refused by rule",
   "setsockopt"},
  {kAllow, "sockets that could be opened, in a network of its own",
   "connect accept accept4 bind listen shutdown getsockname getpeername getsockopt sendto recvfrom "
   "sendmsg recvmsg sendmmsg recvmmsg"},
  // Mounts: the view of files is finished before the program starts.
  {kDeny, "mounts and namespaces",
   "mount umount2 pivot_root chroot fsopen fsconfig fsmount fspick open_tree open_tree_attr "
   "move_mount mount_setattr statmount listmount listns"},
  // The machine: never a sandbox's business.
  {kDeny, "programs and probes inside the kernel",
   "bpf perf_event_open"},
  {kDeny, "the running kernel",
   "init_module finit_module delete_module create_module get_kernel_syms query_module kexec_load "
   "kexec_file_load reboot"},
  {kDeny, "the host",
   "swapon swapoff acct quotactl quotactl_fd syslog sethostname setdomainname vhangup iopl ioperm"},
  {kDeny, "obsolete",
   "lookup_dcookie uselib ustat sysfs _sysctl nfsservctl getpmsg putpmsg afs_syscall tuxcall "
   "security vserver epoll_ctl_old epoll_wait_old"},
});

// A loop that reaps, answers on one socket and ends its namespace. Installed before init reports,
// so writing and sending stay open.
constexpr std::string_view kInit =
    "read write recvmsg sendmsg recvfrom sendto poll ppoll close wait4 waitid kill exit exit_group "
    "rt_sigreturn rt_sigprocmask rt_sigaction rt_sigtimedwait restart_syscall getpid gettid "
    "clock_gettime nanosleep clock_nanosleep";

// Walks one directory tree by descriptors and speaks on one socket. It can neither start a program
// nor open a socket.
constexpr std::string_view kCourier =
    "read write readv writev pread64 pwrite64 recvmsg sendmsg recvfrom sendto poll ppoll close "
    "open openat openat2 mkdir mkdirat getdents64 fstat newfstatat statx fstatfs statfs lseek "
    "ftruncate fchmod fchmodat dup fcntl unlinkat renameat renameat2 "
    "brk mmap munmap mremap mprotect madvise futex getrandom "
    "kill getpid gettid tgkill getuid exit exit_group "
    "rt_sigreturn rt_sigprocmask rt_sigaction restart_syscall "
    "clock_gettime nanosleep clock_nanosleep";
// clang-format on

ArgTest is(std::uint8_t index, std::uint64_t value) { return {.index = index, .value = value}; }

ArgTest masked(std::uint8_t index, std::uint64_t mask, std::uint64_t value) {
  return {.index = index, .mask = mask, .value = value};
}

ArgTest at_least(std::uint8_t index, std::uint64_t value) {
  return {.index = index, .compare = ArgTest::Compare::at_least, .value = value};
}

// The low four bits are the type; the rest is SOCK_CLOEXEC and SOCK_NONBLOCK, or an error that the
// kernel itself reports.
constexpr std::uint64_t kSocketType = 0xf;

std::vector<ArgRule> socket_rules() {
  std::vector<ArgRule> rules;
  const auto let = [&](std::uint64_t family, std::uint64_t type, std::uint64_t protocol) {
    rules.push_back({{is(0, family), masked(1, kSocketType, type), is(2, protocol)}, kAllow});
  };
  for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}) {
    let(AF_UNIX, static_cast<std::uint64_t>(type), 0);
  }
  for (const int family : {AF_INET, AF_INET6}) {
    // The protocol is named by 0 or by its own number; anything else opens another subsystem
    // (MPTCP is stream 262, UDP-Lite datagram 136, raw ICMP datagram 1).
    for (const int protocol : {0, int{IPPROTO_TCP}}) {
      let(static_cast<std::uint64_t>(family), SOCK_STREAM, static_cast<std::uint64_t>(protocol));
    }
    for (const int protocol : {0, int{IPPROTO_UDP}}) {
      let(static_cast<std::uint64_t>(family), SOCK_DGRAM, static_cast<std::uint64_t>(protocol));
    }
  }
  // libc asks the routing table for interfaces and addresses; every other netlink protocol is shut.
  for (const int type : {SOCK_RAW, SOCK_DGRAM}) {
    let(AF_NETLINK, static_cast<std::uint64_t>(type), NETLINK_ROUTE);
  }
  return rules;
}

std::vector<ArgRule> socketpair_rules() {
  std::vector<ArgRule> rules;
  for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}) {
    rules.push_back(
        {{is(0, AF_UNIX), masked(1, kSocketType, static_cast<std::uint64_t>(type)), is(2, 0)},
         kAllow});
  }
  return rules;
}

std::vector<ArgRule> setsockopt_rules() {
  // Spelled as numbers, because the kernel's and libc's headers exclude each other here.
  constexpr int kSocketLevel = 1;
  constexpr int kIpLevel = 0;
  constexpr int kTcpLevel = 6;
  constexpr int kUdpLevel = 17;
  constexpr int kIpv6Level = 41;
  std::vector<ArgRule> rules;
  const auto shut = [&](int level, int option) {
    rules.push_back(
        {{is(1, static_cast<std::uint64_t>(level)), is(2, static_cast<std::uint64_t>(option))},
         kDeny});
  };
  shut(kTcpLevel, 31);   // TCP_ULP: kernel TLS and other upper protocols
  shut(kUdpLevel, 100);  // UDP_ENCAP: IPsec and tunnels over UDP
  for (const int option : {26, 50, 51, 52}) {
    shut(kSocketLevel, option);  // SO_ATTACH_FILTER, _BPF, _REUSEPORT_CBPF, _REUSEPORT_EBPF
  }
  for (const int level : {kIpLevel, kIpv6Level}) {
    // From 64 on: the tables of iptables, arptables and ebtables.
    rules.push_back({{is(1, static_cast<std::uint64_t>(level)), at_least(2, 64)}, kDeny});
  }
  return rules;
}

std::vector<ArgRule> clone_rules() {
  // The seven namespaces. CLONE_NEWTIME is not among them: in clone's flags its bit belongs to the
  // exit signal.
  constexpr std::uint64_t kNamespaces = 0x7e020000;
  static_assert(kNamespaces == (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET));
  // CLONE_PARENT would hand the warden a child that it did not make.
  return {{{masked(0, kNamespaces | CLONE_PARENT, 0)}, kAllow}};
}

std::vector<ArgRule> personality_rules() {
  std::vector<ArgRule> rules;
  // Linux and its 32-bit uname variants, and the question which one is set.
  for (const std::uint64_t persona : {0x0U, 0x8U, 0x20000U, 0x20008U, 0xffffffffU}) {
    rules.push_back({{is(0, persona)}, kAllow});
  }
  return rules;
}

// Huge pages that the host has set aside are in no memory limit: one sandbox could take them all.
// The answer is the kernel's own where none are set aside.
std::vector<ArgRule> huge_page_rules(std::uint8_t index, std::uint64_t flag) {
  return {{{masked(index, flag, flag)}, refuse(ENOMEM)}};
}

std::vector<ArgRule> ioctl_rules() {
  // TIOCSTI types into a terminal, TIOCLINUX pastes into a console, TIOCCONS takes the console's
  // output.
  return {{{is(1, 0x5412)}, kDeny}, {{is(1, 0x541c)}, kDeny}, {{is(1, 0x541d)}, kDeny}};
}

std::vector<ArgRule> fcntl_rules() {
  // F_SETLEASE, F_NOTIFY, F_SETDELEG: they make somebody else's open() of a shared file wait.
  return {{{is(1, 1024)}, kDeny}, {{is(1, 1026)}, kDeny}, {{is(1, 1040)}, kDeny}};
}

std::vector<ArgRule> prctl_rules() {
  // PR_SET_MM rewrites what /proc says about a process; PR_SCHED_CORE can idle the other hardware
  // thread of a core, which is somebody else's time.
  return {{{is(0, PR_SET_MM)}, kDeny}, {{is(0, 62)}, kDeny}};
}

std::vector<ArgRule> mknod_rules(std::uint8_t mode) {
  std::vector<ArgRule> rules;
  // No type at all means a plain file.
  for (const std::uint64_t type : {0U, unsigned{S_IFREG}, unsigned{S_IFIFO}}) {
    rules.push_back({{masked(mode, S_IFMT, type)}, kAllow});
  }
  return rules;
}

std::vector<ArgRule> rules_of(std::string_view call) {
  if (call == "socket") return socket_rules();
  if (call == "socketpair") return socketpair_rules();
  if (call == "setsockopt") return setsockopt_rules();
  if (call == "clone") return clone_rules();
  if (call == "personality") return personality_rules();
  if (call == "mmap") return huge_page_rules(3, 0x40000);      // MAP_HUGETLB
  if (call == "memfd_create") return huge_page_rules(1, 0x4);  // MFD_HUGETLB
  if (call == "shmget") return huge_page_rules(2, 04000);      // SHM_HUGETLB
  if (call == "ioctl") return ioctl_rules();
  if (call == "fcntl") return fcntl_rules();
  if (call == "prctl") return prctl_rules();
  if (call == "mknod") return mknod_rules(1);
  if (call == "mknodat") return mknod_rules(2);
  return {};
}

// Calls that this architecture does not have are skipped.
template <class Visit>
void for_each_call(Arch arch, std::string_view calls, Visit visit) {
  while (!calls.empty()) {
    const std::size_t space = calls.find(' ');
    const std::string_view call = calls.substr(0, space);
    calls.remove_prefix(space == std::string_view::npos ? calls.size() : space + 1);
    if (const auto number = isolation::syscall_number(arch, call)) visit(call, *number);
  }
}

FilterPolicy empty_policy(Arch arch) {
  return {.arch = arch,
          .unknown = kAbsent,
          // In the 32-bit entry the same numbers are other calls, and socketcall hides its
          // arguments. Nothing honest gets here, so the process ends.
          .foreign_arch = isolation::kill_process(),
          .foreign_abi = kAbsent};
}

// `calls` as they stand, everything else that the kernel has refused.
FilterPolicy short_policy(Arch arch, std::string_view calls) {
  FilterPolicy policy = empty_policy(arch);
  for (const auto& entry : isolation::syscall_table(arch)) {
    policy.rules.push_back({entry.number, kDeny, {}});
  }
  for_each_call(arch, calls, [&](std::string_view /*call*/, std::uint32_t number) {
    for (FilterRule& rule : policy.rules) {
      if (rule.number == number) rule.otherwise = kAllow;
    }
  });
  return policy;
}

}  // namespace

Arch native_arch() {
#if defined(__x86_64__)
  return Arch::x86_64;
#elif defined(__aarch64__)
  return Arch::aarch64;
#else
#error "no table of system calls for this architecture"
#endif
}

FilterPolicy program_policy(Arch arch) {
  FilterPolicy policy = empty_policy(arch);
  for (const PolicyLine& line : kProgram) {
    for_each_call(arch, line.calls, [&](std::string_view call, std::uint32_t number) {
      policy.rules.push_back({number, line.verdict, rules_of(call)});
    });
  }
  return policy;
}

FilterPolicy init_policy(Arch arch) { return short_policy(arch, kInit); }

FilterPolicy courier_policy(Arch arch) { return short_policy(arch, kCourier); }

Result<std::vector<sock_filter>> program_filter() {
  return isolation::compile_filter(program_policy(native_arch()));
}

Result<std::vector<sock_filter>> init_filter() {
  return isolation::compile_filter(init_policy(native_arch()));
}

Result<std::vector<sock_filter>> courier_filter() {
  return isolation::compile_filter(courier_policy(native_arch()));
}

std::span<const PolicyLine> program_lines() { return kProgram; }

}  // namespace hutch::plan
