// Making a sandbox: cgroup, init, program; and couriers into one that stands.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/sys.h"
#include "base/units.h"
#include "warden/pid_of.h"
#include "warden/warden.h"

namespace hutch::warden {
namespace {

constexpr std::chrono::seconds kCourierPatience{30};
// What a courier that reads files may need: one whole file, and every name.
constexpr std::uint64_t kCourierMemoryBytes = 64_MiB;

Failure failure_of(const Error& error, Step fallback) {
  return {error.step == Step::none ? fallback : error.step, error.sys_errno};
}

void add_timings(Sandbox* sandbox, const isolation::ActReport& report) {
  const int count = std::min<int>(report.count, isolation::kTimingsMax);
  for (int i = 0; i < count; ++i) sandbox->timings.emplace_back(report.steps[i], report.micros[i]);
}

// A child that has failed before its go has closed its end: its report or its end says why.
void go(const Child& child) {
  const std::byte byte{1};
  ignore_error(sys::send_message(child.report.get(), std::span(&byte, 1), {}));
}

}  // namespace

bool Warden::fails_here([[maybe_unused]] Step step) const {
#ifdef HUTCH_TESTING
  return options_.fail_step == step;
#else
  return false;
#endif
}

plan::LaunchRequest Warden::launch_request(const Sandbox& sandbox, plan::LaunchKind kind) const {
  plan::LaunchRequest request;
  request.kind = kind;
  request.init_id = first_slot_id_ + 2 * sandbox.slot;
  request.program_id = request.init_id + 1;
  request.fail_step = options_.fail_step;
  for (const std::uint32_t cpu : plan::slot_cpus(host_, plan_.cpus_shown, sandbox.slot)) {
    if (cpu < isolation::kCpuWords * 64) request.cpu_mask[cpu / 64] |= 1ULL << (cpu % 64);
  }
  return request;
}

void Warden::create(const Request& request) {
  // Handles only ever rise, so one can never mean two sandboxes.
  if (request.handle <= last_handle_ || request.handle >= (1ULL << 48U)) return;
  last_handle_ = request.handle;
  const std::uint32_t slot = free_slot();
  if (slot >= options_.slots_max || request.profile != 0 ||
      request.image != options_.image_digest) {
    Report report;
    report.tell = Tell::failed;
    report.handle = request.handle;
    report.sys_errno = slot >= options_.slots_max ? EAGAIN : EINVAL;
    tell(report, {});
    return;
  }
  auto owned = std::make_unique<Sandbox>();
  Sandbox* sandbox = owned.get();
  sandbox->handle = request.handle;
  sandbox->slot = slot;
  sandboxes_.emplace(request.handle, std::move(owned));
  if (const auto begun = begin(sandbox); !begun) {
    fail_sandbox(sandbox, failure_of(begun.error(), Step::channel_create));
  }
}

Status Warden::begin(Sandbox* sandbox) {
  const Nanos started = clock_.mono();
  if (fails_here(Step::cgroup_create)) {
    return fail(Error{ErrorCode::setup_failed, Step::cgroup_create, EIO, "failpoint"});
  }
  isolation::CgroupLimits limits;
  limits.memory_bytes = plan_.cgroup.memory_bytes;
  limits.processes = plan_.cgroup.processes;
  limits.cpu_quota_us = plan_.cgroup.cpu_quota_us;
  limits.cpu_period_us = plan_.cgroup.cpu_period_us;
  sandbox->cgroup = TRY(cgroups_.create("sandbox-" + std::to_string(sandbox->handle), limits));
  if (fails_here(Step::cgroup_limits)) {
    return fail(Error{ErrorCode::setup_failed, Step::cgroup_limits, EIO, "failpoint"});
  }
  sandbox->memory_kills = TRY(sandbox->cgroup->watch_memory_kills());
  TRY(watch(sandbox->memory_kills.get(), sandbox->handle, Source::memory_event, EPOLLIN));
  sandbox->timings.emplace_back(
      Step::cgroup_create, static_cast<std::uint32_t>((clock_.mono() - started).count() / 1000));
  if (fails_here(Step::channel_create)) {
    return fail(Error{ErrorCode::setup_failed, Step::channel_create, EIO, "failpoint"});
  }
  auto [ours, theirs] = TRY(sys::socket_pair(SOCK_SEQPACKET));
  sandbox->init.report = std::move(ours);
  const int fds[] = {theirs.get()};
  TRY(launcher_.send(sandbox->handle, launch_request(*sandbox, plan::LaunchKind::init), fds));
  ++sandbox->pending_launches;
  return watch(sandbox->init.report.get(), sandbox->handle, Source::init_report, EPOLLIN);
}

void Warden::on_launcher() {
  auto answer = launcher_.receive();
  if (!answer) {
    log_.error("launcher_lost", "the launcher has ended or talks nonsense");
    stop_serving(70);
    return;
  }
  Sandbox* sandbox = find(answer->handle);
  if (sandbox != nullptr) on_launched(sandbox, std::move(*answer));
}

void Warden::on_launched(Sandbox* sandbox, LauncherLink::Answer answer) {
  --sandbox->pending_launches;
  const bool is_init = answer.kind == plan::LaunchKind::init;
  const bool is_program = answer.kind == plan::LaunchKind::program;
  Child* child = is_init ? &sandbox->init : is_program ? &sandbox->program : &sandbox->courier;
  const Source end = is_init      ? Source::init_end
                     : is_program ? Source::program_end
                                  : Source::courier_end;
  Failure failure{answer.reply.failed_step, answer.reply.sys_errno};
  if (is_init) {
    sandbox->timings.emplace_back(Step::network_create, answer.reply.network_us);
    sandbox->timings.emplace_back(Step::init_clone, answer.reply.clone_us);
    sandbox->phase = Phase::init_setup;
  } else if (is_program) {
    sandbox->timings.emplace_back(Step::program_clone, answer.reply.clone_us);
    sandbox->phase = Phase::program_setup;
  }
  if (answer.pidfd) {
    const auto adopted = adopt(sandbox, child, std::move(answer.pidfd), end);
    if (!adopted && failure.step == Step::none) {
      failure = failure_of(adopted.error(), Step::cgroup_attach);
    }
  }
  if (sandbox->closing) {
    advance_close(sandbox);
  } else if (failure.step != Step::none && !is_init && !is_program) {
    Report report;
    report.tell = Tell::courier_failed;
    report.handle = sandbox->handle;
    report.step = failure.step;
    report.sys_errno = failure.sys_errno;
    sandbox->courier.report.reset();
    if (sandbox->courier.alive()) sandbox->courier_deadline = clock_.mono();
    tell(report, {});
  } else if (failure.step != Step::none) {
    fail_sandbox(sandbox, failure);
  }
}

// From here on the process is ours to end and to wait for. Its go comes only after it is in its
// cgroup: what it allocates before would be charged to the launcher.
Status Warden::adopt(Sandbox* sandbox, Child* child, Fd pidfd, Source end) {
  child->pidfd = std::move(pidfd);
  TRY(watch(child->pidfd.get(), sandbox->handle, end, EPOLLIN));
  child->pid = TRY(pid_of(child->pidfd));
  if (fails_here(Step::cgroup_attach)) {
    return fail(Error{ErrorCode::setup_failed, Step::cgroup_attach, EIO, "failpoint"});
  }
  if (sandbox->closing) return {};
  const Nanos started = clock_.mono();
  TRY(sandbox->cgroup->attach(child->pid));
  if (child != &sandbox->init) {
    // Here and not only inside: the kernel lets a process lower what it has set itself, down to
    // what it was given by somebody with privilege, and that would be the warden's own protection.
    ignore_error(sys::write_control("/proc/" + std::to_string(child->pid) + "/oom_score_adj",
                                    plan::kTenantOomScore));
  }
  sandbox->timings.emplace_back(
      Step::cgroup_attach, static_cast<std::uint32_t>((clock_.mono() - started).count() / 1000));
  go(*child);
  return {};
}

void Warden::on_init_report(Sandbox* sandbox) {
  isolation::ActReport report;
  auto message = sys::receive_message(sandbox->init.report.get(),
                                      std::as_writable_bytes(std::span(&report, 1)));
  const bool making = sandbox->phase == Phase::init_cloning || sandbox->phase == Phase::init_setup;
  if (!making || !message || message->size != sizeof report) {
    // Its end is told by its pidfd; a closed socket would only wake the loop again and again.
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, sandbox->init.report.get(), nullptr);
    return;
  }
  if (report.failed_step != Step::none || message->fds.size() != 1) {
    fail_sandbox(sandbox, {report.failed_step, report.sys_errno});
    return;
  }
  add_timings(sandbox, report);
  sandbox->work = std::move(message->fds[0]);
  struct stat info {};
  if (::fstat(sandbox->work.get(), &info) == 0) sandbox->work_size_empty = info.st_size;
  if (const auto launched = launch_program(sandbox); !launched) {
    fail_sandbox(sandbox, failure_of(launched.error(), Step::channel_create));
  }
}

Status Warden::launch_program(Sandbox* sandbox) {
  sandbox->phase = Phase::program_cloning;
  auto [ours, theirs] = TRY(sys::socket_pair(SOCK_SEQPACKET));
  auto [code, code_end] = TRY(sys::socket_pair(SOCK_STREAM));
  sys::Pipe out = TRY(sys::pipe());
  sys::Pipe err = TRY(sys::pipe());
  const int fds[] = {theirs.get(), sandbox->init.pidfd.get(), code_end.get(), out.write.get(),
                     err.write.get()};
  TRY(launcher_.send(sandbox->handle, launch_request(*sandbox, plan::LaunchKind::program), fds));
  ++sandbox->pending_launches;
  sandbox->program.report = std::move(ours);
  sandbox->code = std::move(code);
  sandbox->out = std::move(out.read);
  sandbox->err = std::move(err.read);
  return watch(sandbox->program.report.get(), sandbox->handle, Source::program_report, EPOLLIN);
}

void Warden::on_program_report(Sandbox* sandbox) {
  isolation::ActReport report;
  auto message = sys::receive_message(sandbox->program.report.get(),
                                      std::as_writable_bytes(std::span(&report, 1)));
  if (message && message->size == sizeof report) {
    if (report.failed_step != Step::none) {
      fail_sandbox(sandbox, {report.failed_step, report.sys_errno});
    } else {
      add_timings(sandbox, report);
      sandbox->executed = true;  // unless a second report says that the exec failed
    }
    return;
  }
  sandbox->program.report.reset();
  if (sandbox->executed && sandbox->program.alive() && !sandbox->closing) tell_created(sandbox);
}

void Warden::tell_created(Sandbox* sandbox) {
  sandbox->phase = Phase::running;
  sandbox->created_told = true;
  Report report;
  report.tell = Tell::created;
  report.handle = sandbox->handle;
  const std::size_t count = std::min(sandbox->timings.size(), report.timings.size());
  for (std::size_t i = 0; i < count; ++i) {
    report.timed_steps[i] = sandbox->timings[i].first;
    report.timings[i] = sandbox->timings[i].second;
  }
  std::vector<Fd> fds;
  fds.push_back(std::move(sandbox->code));
  fds.push_back(std::move(sandbox->out));
  fds.push_back(std::move(sandbox->err));
  tell(report, std::move(fds));
}

// Files go in only while the program waits for its code, and come out only when it has ended: a
// courier that writes beside running code, or reads beside it, could be raced.
void Warden::start_courier(Sandbox* sandbox, Ask ask) {
  const bool in_order = ask == Ask::files_in
                            ? sandbox->phase == Phase::running && !sandbox->armed
                            : sandbox->phase == Phase::ended && sandbox->created_told;
  Status started = fail(Error{ErrorCode::internal, Step::files_in, EINVAL, "out of order"});
  if (in_order && !sandbox->courier.alive() && !sandbox->stream) {
    started = launch_courier(sandbox, ask);
  }
  if (started) return;
  Report report;
  report.tell = Tell::courier_failed;
  report.handle = sandbox->handle;
  const Failure failure =
      failure_of(started.error(), ask == Ask::files_in ? Step::files_in : Step::files_out);
  report.step = failure.step;
  report.sys_errno = failure.sys_errno;
  tell(report, {});
}

Status Warden::launch_courier(Sandbox* sandbox, Ask ask) {
  const auto kind =
      ask == Ask::files_in ? plan::LaunchKind::courier_in : plan::LaunchKind::courier_out;
  // A program may have filled its memory to the brim with files and shared memory, which outlive
  // it: its results must not be lost for want of room to read them.
  if (kind == plan::LaunchKind::courier_out) {
    ignore_error(sandbox->cgroup->raise_memory(plan_.cgroup.memory_bytes + kCourierMemoryBytes));
  }
  auto [ours, theirs] = TRY(sys::socket_pair(SOCK_SEQPACKET));
  auto [stream, stream_end] = TRY(sys::socket_pair(SOCK_STREAM));
  const int fds[] = {theirs.get(), sandbox->init.pidfd.get(), stream_end.get()};
  TRY(launcher_.send(sandbox->handle, launch_request(*sandbox, kind), fds));
  ++sandbox->pending_launches;
  sandbox->courier.report = std::move(ours);
  sandbox->stream = std::move(stream);
  sandbox->courier_deadline = clock_.mono() + kCourierPatience;
  return watch(sandbox->courier.report.get(), sandbox->handle, Source::courier_report, EPOLLIN);
}

void Warden::on_courier_report(Sandbox* sandbox) {
  isolation::ActReport act_report;
  const auto message = sys::receive_message(sandbox->courier.report.get(),
                                            std::as_writable_bytes(std::span(&act_report, 1)));
  const bool whole = message && message->size == sizeof act_report;
  sandbox->courier.report.reset();
  if (!sandbox->stream) return;
  Report report;
  report.handle = sandbox->handle;
  Fd stream = std::move(sandbox->stream);
  if (whole && act_report.failed_step == Step::none) {
    report.tell = Tell::courier;
    std::vector<Fd> fds;
    fds.push_back(std::move(stream));
    tell(report, std::move(fds));
  } else {
    report.tell = Tell::courier_failed;
    report.step = whole ? act_report.failed_step : Step::files_out;
    report.sys_errno = act_report.sys_errno;
    tell(report, {});
  }
}

}  // namespace hutch::warden
