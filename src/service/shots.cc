#include "service/shots.h"

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <optional>
#include <set>
#include <utility>

namespace hutch::service {
namespace {

using engine::SandboxHandle;

constexpr std::size_t kIdLength = 10;
constexpr std::uint32_t kStartFailuresMax = 3;

Error refusal(ErrorCode code) {
  switch (code) {
    case ErrorCode::busy:
      return {code, Step::none, 0, "no sandbox is available right now - try again shortly"};
    case ErrorCode::draining: return {code, Step::none, 0, "the server is stopping"};
    default: return {code, Step::none, 0, "the privileged side has ended"};
  }
}

Error left_error() {
  return {ErrorCode::cancelled, Step::none, 0, "the caller left before the run had ended"};
}

}  // namespace

void Cancellation::cancel() {
  if (std::exchange(cancelled_, true)) return;
  if (const auto callback = std::exchange(callback_, {})) callback();
}

void Cancellation::on_cancel(std::function<void()> callback) {
  if (!cancelled_) {
    callback_ = std::move(callback);
  } else if (callback) {
    callback();
  }
}

// One request, from its arrival to its answer.
struct Request {
  enum class Stage { waiting, running, answered };

  Request(boost::asio::io_context& io, WaiterId its_id) : id(its_id), answered_signal(io) {
    answered_signal.expires_at(boost::asio::steady_timer::time_point::max());
  }

  WaiterId id;
  Stage stage = Stage::waiting;
  std::shared_ptr<const model::ShotSpec> spec;
  std::shared_ptr<engine::LiveOutput> live;
  Nanos arrived{};
  Nanos handed_out{};
  Waiter waiter;
  SandboxHandle sandbox{};
  std::uint32_t attempts = 0;
  bool client_left = false;
  std::optional<Result<model::ShotResult>> answer;
  boost::asio::steady_timer answered_signal;  // never expires; cancelled when the answer is there
};

class Shots::Core : public std::enable_shared_from_this<Shots::Core> {
 public:
  Core(boost::asio::io_context& io, engine::Engine& engine, const Clock& clock, Random& random,
       std::function<HostMemory()> host_memory, ShotsOptions options, ShotsObservers observers)
      : io_(io),
        engine_(engine),
        clock_(clock),
        random_(random),
        host_memory_(std::move(host_memory)),
        options_(options),
        observers_(std::move(observers)),
        tick_(io),
        drain_timer_(io) {}

  void start(std::function<void(Status)> filled) {
    filled_ = std::move(filled);
    const auto weak = weak_from_this();
    engine_.on_warm_lost([weak](SandboxHandle sandbox) {
      if (const auto self = weak.lock()) self->warm_lost(sandbox);
    });
    engine_.on_fatal([weak](const Error& error) {
      if (const auto self = weak.lock()) self->engine_gone(error);
    });
    happen(Started{});
  }

  void set_pool(const PoolOptions& options) {
    options_.pool = options;
    happen(Tick{});
  }

  void stop() {
    tick_.cancel();
    drain_timer_.cancel();
    closed_ = true;
  }

  std::shared_ptr<Request> arrive(model::ShotSpec spec, std::shared_ptr<engine::LiveOutput> live) {
    auto request = std::make_shared<Request>(io_, WaiterId{++last_waiter_});
    request->spec = std::make_shared<const model::ShotSpec>(std::move(spec));
    request->live = std::move(live);
    request->arrived = clock_.mono();
    requests_.emplace(request->id, request);
    happen(Arrived{request->id});
    return request;
  }

  void leave(const std::shared_ptr<Request>& request) {
    request->client_left = true;
    switch (request->stage) {
      case Request::Stage::waiting:
        happen(Left{request->id});
        answer(*request, fail(left_error()));
        break;
      case Request::Stage::running: engine_.cancel(request->sandbox); break;
      case Request::Stage::answered: break;
    }
  }

  std::string new_sandbox_id() { return "sandbox-" + random_.base32(kIdLength); }

  PoolNumbers numbers() const {
    return {static_cast<std::uint32_t>(state_.warm.size()), options_.pool.target, state_.running,
            state_.created_total};
  }

  ShotStats stats() const {
    ShotStats stats = stats_;
    stats.creating = state_.creating;
    stats.waiting = static_cast<std::uint32_t>(state_.line.size());
    stats.live = engine_.live();
    stats.quarantined = engine_.quarantined();
    return stats;
  }

  bool ready() const {
    const bool failing = state_.failures_in_a_row > 0 && state_.warm.empty();
    return state_.phase == PoolPhase::serving && state_.filled_once && !failing;
  }

  void drain(std::function<void()> drained) {
    if (state_.phase == PoolPhase::draining) return stop_now();
    drained_ = std::move(drained);
    happen(DrainAsked{});
    drain_timer_.expires_after(std::chrono::milliseconds(options_.drain_ms));
    const auto weak = weak_from_this();
    drain_timer_.async_wait([weak](const boost::system::error_code& ec) {
      const auto self = weak.lock();
      if (!ec && self) self->stop_now();
    });
    tell_drained();
  }

  void stop_now() {
    for (const auto& [id, request] : requests_) {
      if (request->stage == Request::Stage::running) engine_.cancel(request->sandbox);
    }
  }

 private:
  void happen(const PoolEvent& event) {
    if (closed_) return;
    PoolFacts facts;
    facts.now = clock_.mono();
    // Only a request in the line makes the host's memory a question.
    if (!state_.line.empty() || std::holds_alternative<Arrived>(event) ||
        std::holds_alternative<RunNeverStarted>(event)) {
      facts.memory = host_memory_();
    }
    std::array<std::uint8_t, 2> bytes{};
    random_.fill(bytes);
    facts.jitter_permille = (bytes[0] * 256U + bytes[1]) % 1000U;
    const PoolDecision decision = decide(state_, options_.pool, facts, event);
    for (const PoolAction& action : decision.actions) {
      std::visit([this](const auto& known) { act(known); }, action);
    }
    set_tick(decision.wake_at);
    tell_filled();
  }

  void act(const StartCreate&) {
    const auto weak = weak_from_this();
    engine_.create([weak](Result<engine::Created> created) {
      if (const auto self = weak.lock()) self->create_done(std::move(created));
    });
  }

  void act(const HandOut& action) {
    const auto request = requests_.at(action.waiter.id);
    request->stage = Request::Stage::running;
    request->waiter = action.waiter;
    request->sandbox = action.sandbox;
    request->handed_out = clock_.mono();
    request->attempts += 1;
    const auto weak = weak_from_this();
    engine_.run(action.sandbox, request->spec, request->live,
                [weak, request](Result<model::ShotResult> result) {
                  if (const auto self = weak.lock()) self->run_done(request, std::move(result));
                });
  }

  void act(const Refuse& action) {
    answer(*requests_.at(action.waiter), fail(refusal(action.code)));
  }

  void act(const Discard& action) { engine_.destroy(action.sandbox); }

  void create_done(Result<engine::Created> created) {
    if (created) {
      for (const engine::StepTiming& timing : created->timings) {
        StepTotal& total = stats_.setup[timing.step];
        total.count += 1;
        total.micros += timing.micros;
      }
      happen(SandboxReady{created->handle});
      return;
    }
    stats_.create_failures_total += 1;
    happen(CreateFailed{created.error().code});
    if (observers_.create_failed) {
      observers_.create_failed(created.error(), state_.failures_in_a_row);
    }
    if (filled_ && state_.failures_in_a_row >= kStartFailuresMax) {
      std::exchange(filled_, {})(fail(created.error()));
    }
  }

  void run_done(const std::shared_ptr<Request>& request, Result<model::ShotResult> result) {
    const bool never_started = !result && result.error().code == ErrorCode::sandbox_lost &&
                               result.error().step == Step::run_start;
    // Everything that stood warm may have died at once, and one more: what is made after the
    // request came is worth a try.
    const std::uint32_t attempts_max = options_.pool.target + 2;
    if (never_started && !request->client_left && request->attempts < attempts_max) {
      request->stage = Request::Stage::waiting;
      happen(RunNeverStarted{request->waiter});
      tell_drained();  // while draining it is refused, and may have been the last
      return;
    }
    if (request->client_left) {
      answer(*request, fail(left_error()));
    } else if (result && result->outcome.cause == model::Cause::cancelled) {
      answer(*request, fail(refusal(ErrorCode::draining)));
    } else {
      answer(*request, std::move(result));
    }
    happen(RunEnded{});
    tell_drained();
  }

  void answer(Request& request, Result<model::ShotResult> result) {
    if (request.stage == Request::Stage::answered) return;
    if (result) {
      stats_.ended[result->outcome.cause] += 1;
    } else {
      stats_.failed[result.error().code] += 1;
    }
    request.stage = Request::Stage::answered;
    request.answer = std::move(result);
    request.answered_signal.cancel();
    requests_.erase(request.id);
  }

  void warm_lost(SandboxHandle sandbox) {
    stats_.warm_lost_total += 1;
    if (observers_.warm_lost) observers_.warm_lost();
    happen(WarmLost{sandbox});
  }

  void engine_gone(const Error& error) {
    happen(EngineGone{});
    if (filled_) std::exchange(filled_, {})(fail(error));
    if (observers_.fatal) observers_.fatal(error);
  }

  void set_tick(std::optional<Nanos> wake_at) {
    if (!wake_at) {
      tick_.cancel();
      return;
    }
    tick_.expires_after(std::max(Nanos{0}, *wake_at - clock_.mono()));
    const auto weak = weak_from_this();
    tick_.async_wait([weak](const boost::system::error_code& ec) {
      const auto self = weak.lock();
      if (!ec && self) self->happen(Tick{});
    });
  }

  void tell_filled() {
    if (!state_.filled_once || !filled_) return;
    std::exchange(filled_, {})(Status{});
  }

  void tell_drained() {
    if (!drained_ || state_.running > 0) return;
    drain_timer_.cancel();
    boost::asio::post(io_, std::exchange(drained_, {}));
  }

  boost::asio::io_context& io_;
  engine::Engine& engine_;
  const Clock& clock_;
  Random& random_;
  std::function<HostMemory()> host_memory_;
  ShotsOptions options_;
  ShotsObservers observers_;
  boost::asio::steady_timer tick_;
  boost::asio::steady_timer drain_timer_;
  PoolState state_;
  ShotStats stats_;
  std::uint64_t last_waiter_ = 0;
  std::map<WaiterId, std::shared_ptr<Request>> requests_;
  std::function<void(Status)> filled_;
  std::function<void()> drained_;
  bool closed_ = false;
};

Shots::Shots(boost::asio::io_context& io, engine::Engine& engine, const Clock& clock,
             Random& random, std::function<HostMemory()> host_memory, ShotsOptions options,
             ShotsObservers observers)
    : core_(std::make_shared<Core>(io, engine, clock, random, std::move(host_memory), options,
                                   std::move(observers))) {}

Shots::~Shots() { core_->stop(); }

void Shots::start(std::function<void(Status)> filled) { core_->start(std::move(filled)); }

boost::asio::awaitable<Result<ShotAnswer>> Shots::run(model::ShotSpec spec,
                                                      std::shared_ptr<Cancellation> cancellation,
                                                      std::shared_ptr<LiveShot> live) {
  const auto core = core_;
  std::string sandbox_id = core->new_sandbox_id();
  if (live) live->sandbox_id = sandbox_id;
  if (cancellation && cancellation->cancelled()) co_return fail(left_error());
  std::shared_ptr<engine::LiveOutput> output;
  if (live) output = {live, &live->output};
  const auto request = core->arrive(std::move(spec), std::move(output));
  if (cancellation) {
    std::weak_ptr<Core> weak = core;
    std::function<void()> leave = [weak, request] {
      if (const auto alive = weak.lock()) alive->leave(request);
    };
    cancellation->on_cancel(std::move(leave));
  }
  while (!request->answer) {
    boost::system::error_code ignored;
    auto token = boost::asio::redirect_error(boost::asio::use_awaitable, ignored);
    co_await request->answered_signal.async_wait(token);
  }
  if (cancellation) cancellation->on_cancel({});
  if (!request->answer->has_value()) co_return fail(std::move(request->answer->error()));
  const std::uint64_t waited_us = static_cast<std::uint64_t>(
      (request->handed_out - request->arrived) / std::chrono::microseconds(1));
  co_return ShotAnswer{std::move(sandbox_id), std::move(request->answer->value()), waited_us};
}

void Shots::set_pool(const PoolOptions& options) { core_->set_pool(options); }

PoolNumbers Shots::pool_numbers() const { return core_->numbers(); }
ShotStats Shots::stats() const { return core_->stats(); }
bool Shots::ready() const { return core_->ready(); }
void Shots::drain(std::function<void()> drained) { core_->drain(std::move(drained)); }
void Shots::stop_now() { core_->stop_now(); }

}  // namespace hutch::service
