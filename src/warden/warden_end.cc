// Running and ending: deadlines, exits, memory, tear-down.
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>

#include "base/sys.h"
#include "warden/warden.h"

namespace hutch::warden {
namespace {

// What asks the interpreter to write out what it has buffered; see sitecustomize.py.
constexpr int kFlushSignal = 64;
constexpr std::chrono::milliseconds kFlushPatience{40};
constexpr std::uint32_t kMemoryChecks = 50;
constexpr std::chrono::milliseconds kMemoryCheckEvery{10};
constexpr std::chrono::seconds kClosePatience{2};
constexpr std::chrono::milliseconds kRetryEvery{5};
constexpr std::chrono::seconds kQuarantineRetryEvery{1};

void send_signal(const Child& child, int signal_number) {
  if (child.alive()) {
    ::syscall(SYS_pidfd_send_signal, child.pidfd.get(), signal_number, nullptr, 0);
  }
}

struct Ending {
  bool by_signal = false;
  int status = 0;
  std::uint64_t cpu_us = 0;             // of the process and the children that it waited for
  std::uint64_t memory_peak_bytes = 0;  // of the largest of them
};

std::uint64_t micros(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 +
         static_cast<std::uint64_t>(time.tv_usec);
}

// Waits for exactly this process; it has ended already. Releases its pidfd.
Ending reap(Child* child) {
  siginfo_t info{};
  rusage usage{};
  Ending ending;
  // The call itself: the C library's function has no place for the usage.
  const long waited =
      ::syscall(SYS_waitid, P_PIDFD, child->pidfd.get(), &info, WEXITED | WNOHANG | __WALL, &usage);
  if (waited == 0 && info.si_pid != 0) {
    ending.by_signal = info.si_code != CLD_EXITED;
    ending.status = info.si_status;
    ending.cpu_us = micros(usage.ru_utime) + micros(usage.ru_stime);
    ending.memory_peak_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
    child->pidfd.reset();
    child->pid = -1;
  }
  return ending;
}

// User and system time of a process so far, from /proc; 0 when it cannot be read.
std::uint64_t cpu_us_of(pid_t pid) {
  const auto text = sys::read_file("/proc/" + std::to_string(pid) + "/stat", 4096);
  // The name in parentheses may hold anything; utime and stime are fields 14 and 15.
  const std::size_t name_end = text ? text->rfind(')') : std::string::npos;
  if (name_end == std::string::npos) return 0;
  std::uint64_t user = 0;
  std::uint64_t system = 0;
  const int got = std::sscanf(text->c_str() + name_end + 1,
                              " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64,
                              &user, &system);
  const long ticks = ::sysconf(_SC_CLK_TCK);
  if (got != 2 || ticks <= 0) return 0;
  return (user + system) * 1'000'000 / static_cast<std::uint64_t>(ticks);
}

}  // namespace

// The deadline runs from here, on the monotonic clock.
void Warden::arm(Sandbox* sandbox, std::uint32_t timeout_ms) {
  if (sandbox->armed || sandbox->phase != Phase::running) return;
  sandbox->armed = true;
  sandbox->armed_at = clock_.mono();
  // What warming took is not the run's.
  sandbox->cpu_us_before = sandbox->cgroup->counters().cpu_us;
  if (sandbox->cpu_us_before == 0) sandbox->own_cpu_us_before = cpu_us_of(sandbox->program.pid);
  sandbox->deadline = sandbox->armed_at + std::chrono::milliseconds(timeout_ms);
}

void Warden::stop(Sandbox* sandbox) {
  if (sandbox->phase != Phase::running) return;
  sandbox->flags |= kStopped;
  send_signal(sandbox->program, SIGKILL);
}

void Warden::on_deadline(Sandbox* sandbox, Nanos now) {
  if (sandbox->deadline.count() != 0 && now >= sandbox->deadline) {
    sandbox->deadline = Nanos{0};
    sandbox->flags |= kTimedOut;
    sandbox->kill_at = now + kFlushPatience;
    send_signal(sandbox->program, kFlushSignal);
  }
  if (sandbox->kill_at.count() != 0 && now >= sandbox->kill_at) {
    sandbox->kill_at = Nanos{0};
    send_signal(sandbox->program, SIGKILL);
  }
  if (sandbox->memory_check_at.count() != 0 && now >= sandbox->memory_check_at) {
    check_memory(sandbox, now);
  }
  if (sandbox->courier_deadline.count() != 0 && now >= sandbox->courier_deadline) {
    sandbox->courier_deadline = Nanos{0};
    send_signal(sandbox->courier, SIGKILL);
  }
  if (sandbox->retry_at.count() != 0 && now >= sandbox->retry_at) {
    sandbox->retry_at = Nanos{0};
    // One that was hidden behind a child of ours when its signal came is never signalled again.
    reap_strangers();
    advance_close(sandbox);
  }
}

// v1 wakes us when the kernel begins to look for a victim, which is before it counts the kill.
void Warden::on_memory_event(Sandbox* sandbox) {
  std::array<std::byte, 4096> drained{};
  ignore_error(sys::read_some(sandbox->memory_kills.get(), drained));
  sandbox->memory_checks_left = kMemoryChecks;
  check_memory(sandbox, clock_.mono());
}

// The kernel's killer takes one process; a program that lost a part of itself is not the program
// that was sent, so all of it ends. cgroup v2 does the same by itself (memory.oom.group).
void Warden::check_memory(Sandbox* sandbox, Nanos now) {
  sandbox->memory_check_at = Nanos{0};
  if (sandbox->phase != Phase::running || (sandbox->flags & kMemoryKilled) != 0) return;
  if (sandbox->cgroup->counters().memory_kills > 0) {
    sandbox->flags |= kMemoryKilled;
    // The first cause wins: a deadline that passes while the program dies changes nothing.
    sandbox->deadline = Nanos{0};
    send_signal(sandbox->program, SIGKILL);
  } else if (sandbox->memory_checks_left > 0) {
    --sandbox->memory_checks_left;
    sandbox->memory_check_at = now + kMemoryCheckEvery;
  }
}

// Numbers only: the working directory is the tenant's, and no name in it is ever looked at here.
void Warden::collect(Sandbox* sandbox, Report* report) const {
  const isolation::CgroupCounters counters = sandbox->cgroup->counters();
  report->memory_peak_bytes = counters.memory_peak_bytes;
  report->cpu_us = counters.cpu_us - std::min(counters.cpu_us, sandbox->cpu_us_before);
  if (counters.memory_kills > 0) report->flags |= kMemoryKilled;
  if (counters.processes_denied > 0) report->flags |= kProcessDenied;
  struct statfs space {};
  if (::fstatfs(sandbox->work.get(), &space) == 0) {
    if (space.f_bfree == 0) report->flags |= kDiskFull;
    if (space.f_ffree == 0) report->flags |= kInodesFull;
  }
  // A tmpfs directory's size counts its entries.
  struct stat info {};
  if (::fstat(sandbox->work.get(), &info) == 0 && info.st_size == sandbox->work_size_empty) {
    report->flags |= kWorkEmpty;
  }
}

void Warden::on_program_end(Sandbox* sandbox) {
  const Nanos now = clock_.mono();
  const Ending ending = reap(&sandbox->program);
  if (sandbox->program.alive()) return;
  sandbox->deadline = Nanos{0};
  sandbox->kill_at = Nanos{0};
  if (sandbox->closing) {
    advance_close(sandbox);
    return;
  }
  if (!sandbox->created_told) {
    fail_sandbox(sandbox, {Step::program_exec, 0});
    return;
  }
  sandbox->phase = Phase::ended;
  Report report;
  report.tell = Tell::ended;
  report.handle = sandbox->handle;
  report.by_signal = ending.by_signal ? 1 : 0;
  report.status = ending.status;
  report.flags = sandbox->flags;
  if (sandbox->armed) {
    report.duration_us = static_cast<std::uint64_t>((now - sandbox->armed_at).count() / 1000);
  }
  collect(sandbox, &report);
  // Where no control group counts, the kernel's account of the program stands in for it.
  if (report.memory_peak_bytes == 0) report.memory_peak_bytes = ending.memory_peak_bytes;
  if (report.cpu_us == 0 && sandbox->cpu_us_before == 0) {
    report.cpu_us = ending.cpu_us - std::min(ending.cpu_us, sandbox->own_cpu_us_before);
  }
  tell(report, {});
}

// A live sandbox whose init ends is lost with everything in it: the kernel kills the rest.
void Warden::on_init_end(Sandbox* sandbox) {
  // While the program is not reaped, its pid namespace keeps init from finishing.
  reap(&sandbox->init);
  if (sandbox->init.alive()) return;
  if (sandbox->closing) {
    advance_close(sandbox);
  } else if (!sandbox->created_told) {
    fail_sandbox(sandbox, {Step::init_report, 0});
  } else {
    log_.warn("init_lost", "the init of a sandbox has ended by itself",
              {{"handle", sandbox->handle}});
    close_sandbox(sandbox);
  }
}

void Warden::on_courier_end(Sandbox* sandbox) {
  const Ending ending = reap(&sandbox->courier);
  if (sandbox->courier.alive()) return;
  sandbox->courier_deadline = Nanos{0};
  if (sandbox->closing) {
    advance_close(sandbox);
    return;
  }
  Report report;
  report.handle = sandbox->handle;
  if (sandbox->stream) {
    // It died before it could report.
    sandbox->stream.reset();
    sandbox->courier.report.reset();
    report.tell = Tell::courier_failed;
    report.step = Step::files_out;
  } else {
    report.tell = Tell::courier_ended;
    report.by_signal = ending.by_signal ? 1 : 0;
    report.status = ending.status;
  }
  tell(report, {});
}

void Warden::fail_sandbox(Sandbox* sandbox, Failure failure) {
  if (sandbox->closing) return;
  sandbox->failed = !sandbox->created_told;
  sandbox->failure = failure;
  close_sandbox(sandbox);
}

// Killing init kills everything in its pid namespace, whatever it is doing; what is outside of it
// still (a process that has not entered yet) ends by its own pidfd.
void Warden::close_sandbox(Sandbox* sandbox) {
  if (sandbox->closing) return;
  sandbox->closing = true;
  sandbox->close_started = clock_.mono();
  sandbox->deadline = Nanos{0};
  sandbox->kill_at = Nanos{0};
  sandbox->courier_deadline = Nanos{0};
  sandbox->memory_check_at = Nanos{0};
  sandbox->code.reset();
  sandbox->out.reset();
  sandbox->err.reset();
  sandbox->stream.reset();
  sandbox->work.reset();
  sandbox->memory_kills.reset();
  advance_close(sandbox);
}

void Warden::advance_close(Sandbox* sandbox) {
  send_signal(sandbox->program, SIGKILL);
  send_signal(sandbox->courier, SIGKILL);
  send_signal(sandbox->init, SIGKILL);
  const bool alive = sandbox->program.alive() || sandbox->courier.alive() || sandbox->init.alive();
  // The launcher may have ended with a request unanswered.
  const bool awaited = sandbox->pending_launches > 0 && !stopping_;
  const bool removed =
      !alive && !awaited && (sandbox->cgroup == nullptr || sandbox->cgroup->remove().has_value());
  if (!removed) {
    const Nanos now = clock_.mono();
    if (now - sandbox->close_started > kClosePatience) quarantine(sandbox);
    sandbox->retry_at =
        now + (sandbox->quarantined ? Nanos(kQuarantineRetryEvery) : Nanos(kRetryEvery));
    return;
  }
  finished_.push_back(sandbox->handle);
  sandbox->retry_at = Nanos{0};
  if (sandbox->quarantined) {
    log_.info("quarantine_over", "a sandbox that would not end is gone",
              {{"handle", sandbox->handle}});
  }
  Report report;
  report.handle = sandbox->handle;
  report.tell = sandbox->failed && !sandbox->quarantined ? Tell::failed : Tell::destroyed;
  report.step = sandbox->failure.step;
  report.sys_errno = sandbox->failure.sys_errno;
  tell(report, {});
}

// The answer does not wait for what will not die; its slot is not used again until it has.
void Warden::quarantine(Sandbox* sandbox) {
  if (sandbox->quarantined) return;
  sandbox->quarantined = true;
  if (sandbox->cgroup != nullptr) ignore_error(sandbox->cgroup->kill_all());
  log_.error("quarantined", "a sandbox would not end; its slot is not reused until it has",
             {{"handle", sandbox->handle}, {"slot", sandbox->slot}});
  Report report;
  report.handle = sandbox->handle;
  report.tell = sandbox->failed ? Tell::failed : Tell::destroyed;
  report.step = sandbox->failure.step;
  report.sys_errno = sandbox->failure.sys_errno;
  report.flags = kQuarantined;
  tell(report, {});
}

}  // namespace hutch::warden
