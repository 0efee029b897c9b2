#include "warden/warden.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <algorithm>

#include "base/sys.h"
#include "warden/pid_of.h"

namespace hutch::warden {
namespace {

constexpr std::uint64_t kSources = 16;
constexpr std::size_t kOutboxMax = 8192;
constexpr std::uint32_t kTimeoutMsMax = 86'400'000;
// In one turn of the loop: a server that never stops talking must not keep deadlines from being
// enforced.
constexpr int kRequestsAtOnce = 64;

std::uint64_t event_key(std::uint64_t handle, Source source) {
  return handle * kSources + static_cast<std::uint64_t>(source);
}

}  // namespace

Warden::Warden(Parts parts)
    : options_(parts.options),
      plan_(parts.plan),
      host_(parts.host),
      cgroups_(parts.cgroups),
      zone_(parts.zone),
      first_slot_id_(parts.first_slot_id),
      launcher_(parts.zone.launcher_socket()),
      server_(std::move(parts.server)),
      clock_(parts.clock),
      log_(parts.log) {}

Status Warden::watch(int fd, std::uint64_t handle, Source source, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = event_key(handle, source);
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return fail(sys::last_error(ErrorCode::io, Step::none, "cannot watch a descriptor"));
  }
  return {};
}

int Warden::run() {
  epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child, nullptr);
  signals_ = Fd(::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
  launcher_pid_ = pid_of(zone_.launcher_pidfd()).value_or(-1);
  const bool watching = sys::set_nonblocking(server_.get()) &&
                        watch(server_.get(), 0, Source::server, EPOLLIN) &&
                        watch(zone_.launcher_socket(), 0, Source::launcher, EPOLLIN) &&
                        watch(zone_.launcher_pidfd().get(), 0, Source::launcher_end, EPOLLIN) &&
                        watch(zone_.anchor_pidfd(), 0, Source::anchor_end, EPOLLIN) &&
                        watch(signals_.get(), 0, Source::child_signal, EPOLLIN);
  if (!watching) return 70;
  while (!finished()) {
    std::array<epoll_event, 64> events{};
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), wait_ms());
    for (int i = 0; i < count; ++i) dispatch(events[static_cast<std::size_t>(i)].data.u64);
    on_timers();
    for (const std::uint64_t handle : finished_) sandboxes_.erase(handle);
    finished_.clear();
  }
  return status_;
}

// An event may be about a sandbox that an earlier event of the same batch has ended: looked up
// again each time, never by pointer.
void Warden::dispatch(std::uint64_t key) {
  const auto source = static_cast<Source>(key % kSources);
  const std::uint64_t handle = key / kSources;
  if (handle != 0) {
    if (Sandbox* sandbox = find(handle)) dispatch_sandbox(sandbox, source);
    return;
  }
  switch (source) {
    case Source::server: on_server(); break;
    case Source::launcher: on_launcher(); break;
    case Source::launcher_end:
      zone_.reap_launcher();
      launcher_pid_ = -1;
      on_zone_lost();
      break;
    case Source::anchor_end:
      // Left unreaped, and watched no more: its end is complete when everything else is reaped.
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, zone_.anchor_pidfd(), nullptr);
      on_zone_lost();
      break;
    case Source::child_signal: reap_strangers(); break;
    default: break;
  }
}

void Warden::dispatch_sandbox(Sandbox* sandbox, Source source) {
  switch (source) {
    case Source::init_report: on_init_report(sandbox); break;
    case Source::init_end: on_init_end(sandbox); break;
    case Source::program_report: on_program_report(sandbox); break;
    case Source::program_end: on_program_end(sandbox); break;
    case Source::courier_report: on_courier_report(sandbox); break;
    case Source::courier_end: on_courier_end(sandbox); break;
    case Source::memory_event: on_memory_event(sandbox); break;
    default: break;
  }
}

// Rounded up: a wait that ends before its deadline would come round again at once.
int Warden::wait_ms() const {
  Nanos next{0};
  const auto consider = [&next](Nanos at) {
    if (at.count() != 0 && (next.count() == 0 || at < next)) next = at;
  };
  for (const auto& [handle, sandbox] : sandboxes_) {
    consider(sandbox->deadline);
    consider(sandbox->kill_at);
    consider(sandbox->courier_deadline);
    consider(sandbox->memory_check_at);
    consider(sandbox->retry_at);
  }
  if (next.count() == 0) return -1;
  const auto left = next - clock_.mono();
  if (left.count() <= 0) return 0;
  return static_cast<int>((left.count() + 999'999) / 1'000'000);
}

void Warden::on_timers() {
  const Nanos now = clock_.mono();
  for (auto& [handle, sandbox] : sandboxes_) on_deadline(sandbox.get(), now);
}

void Warden::on_server() {
  flush_outbox();
  for (int taken = 0; taken < kRequestsAtOnce; ++taken) {
    Request request;
    const auto message =
        sys::receive_message(server_.get(), std::as_writable_bytes(std::span(&request, 1)));
    if (message && message->would_block) return;
    // Anything that is not exactly a request means that the server is not what it was.
    if (!message || message->size != sizeof request || message->truncated ||
        !message->fds.empty()) {
      if (message && message->size != 0) {
        log_.error("server_talks_nonsense", "the server sent something that is not a request");
      }
      stop_serving(0);
      return;
    }
    handle_request(request);
  }
}

void Warden::handle_request(const Request& request) {
  if (request.ask == Ask::create) {
    create(request);
    return;
  }
  Sandbox* sandbox = find(request.handle);
  // A request may cross the report that its sandbox has ended: nothing to do then.
  if (sandbox == nullptr || sandbox->closing) return;
  switch (request.ask) {
    case Ask::arm:
      if (request.timeout_ms >= 1 && request.timeout_ms <= kTimeoutMsMax) {
        arm(sandbox, request.timeout_ms);
      }
      break;
    case Ask::stop: stop(sandbox); break;
    case Ask::files_in:
    case Ask::files_out: start_courier(sandbox, request.ask); break;
    case Ask::destroy: close_sandbox(sandbox); break;
    case Ask::create: break;
  }
}

void Warden::on_zone_lost() {
  if (!stopping_) {
    log_.error("zone_lost", "the launcher or the anchor of the sandbox side has ended");
  }
  stop_serving(70);
}

// Children that nobody announced: a tenant's process that managed to be cloned as our child, say,
// or a program whose launcher ended before it could answer. They are reaped, or the init of their
// sandbox could never finish dying.
void Warden::reap_strangers() {
  std::array<signalfd_siginfo, 16> drained{};
  ignore_error(sys::read_some(signals_.get(), std::as_writable_bytes(std::span(drained))));
  for (;;) {
    siginfo_t info{};
    constexpr int kLook = WEXITED | WNOHANG | WNOWAIT | __WALL;
    if (::waitid(P_ALL, 0, &info, kLook) != 0 || info.si_pid == 0) return;
    const pid_t pid = info.si_pid;
    // Our own are reaped by their pidfd, with everything that their end means.
    if (is_ours(pid)) return;
    ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | __WALL);
  }
}

bool Warden::is_ours(pid_t pid) const {
  if (pid == zone_.anchor_pid() || pid == launcher_pid_) return true;
  return std::ranges::any_of(sandboxes_, [this, pid](const auto& entry) {
    const Sandbox& sandbox = *entry.second;
    // What the launcher has made and not told of yet; nothing is awaited from it in the end.
    const bool awaited = sandbox.pending_launches > 0 && !stopping_;
    return awaited || sandbox.init.pid == pid || sandbox.program.pid == pid ||
           sandbox.courier.pid == pid;
  });
}

void Warden::stop_serving(int status) {
  if (stopping_) return;
  stopping_ = true;
  status_ = status;
  for (auto& [handle, sandbox] : sandboxes_) close_sandbox(sandbox.get());
  server_.reset();
  outbox_.clear();
  zone_.release();
}

void Warden::tell(const Report& report, std::vector<Fd> fds) {
  if (stopping_) return;
  outbox_.push_back({report, std::move(fds)});
  flush_outbox();
}

// Never blocks: a server that does not read must not keep deadlines from being enforced.
void Warden::flush_outbox() {
  while (!outbox_.empty()) {
    const Outgoing& next = outbox_.front();
    std::vector<int> numbers;
    for (const Fd& fd : next.fds) numbers.push_back(fd.get());
    const auto sent =
        sys::send_message(server_.get(), std::as_bytes(std::span(&next.report, 1)), numbers);
    if (!sent && sys::would_block(sent.error()) && outbox_.size() < kOutboxMax) break;
    if (!sent) {
      stop_serving(0);
      return;
    }
    outbox_.pop_front();
  }
  epoll_event event{};
  event.events = outbox_.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT;
  event.data.u64 = event_key(0, Source::server);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, server_.get(), &event);
}

Sandbox* Warden::find(std::uint64_t handle) {
  const auto found = sandboxes_.find(handle);
  if (found == sandboxes_.end()) return nullptr;
  const bool gone = std::find(finished_.begin(), finished_.end(), handle) != finished_.end();
  return gone ? nullptr : found->second.get();
}

std::uint32_t Warden::free_slot() const {
  std::vector<bool> taken(options_.slots_max);
  for (const auto& [handle, sandbox] : sandboxes_) taken[sandbox->slot] = true;
  const auto free = std::find(taken.begin(), taken.end(), false);
  return static_cast<std::uint32_t>(free - taken.begin());
}

}  // namespace hutch::warden
