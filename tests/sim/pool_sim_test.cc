// The pool's decisions against a simulated world: arrivals, impatient clients, creations that work,
// fail or are slow, sandboxes that die, memory that comes and goes, a drain at the end. Time is a
// number, so hours pass in milliseconds. The world is drawn from a seed: HUTCH_SIM_SEED=N repeats
// one; a failure prints it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>

#include "base/clock.h"
#include "base/random.h"
#include "service/pool_decide.h"

namespace hutch::service {
namespace {

using engine::SandboxHandle;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::uint64_t first_seed() {
  if (const char* text = std::getenv("HUTCH_SIM_SEED")) return std::strtoull(text, nullptr, 10);
  return 1;
}

int seeds() { return std::getenv("HUTCH_SIM_SEED") != nullptr ? 1 : 40; }

class World {
 public:
  World(std::uint64_t seed, PoolOptions options) : options_(options), random_(seed) {
    send(Started{});
  }

  PoolState& state() { return state_; }
  FakeClock& clock() { return clock_; }
  std::uint64_t creates_asked() const { return creates_asked_; }
  std::uint64_t ticks() const { return ticks_; }
  std::uint64_t served() const { return served_; }
  std::uint64_t refused_busy() const { return refused_busy_; }
  void set_failing(bool failing) { failing_ = failing; }
  void set_available(std::uint64_t bytes) { available_ = bytes; }
  void set_latency(Nanos least, Nanos most) {
    latency_least_ = least;
    latency_most_ = most;
  }

  std::uint64_t draw(std::uint64_t below) {
    std::array<std::uint8_t, 4> bytes{};
    random_.fill(bytes);
    std::uint64_t value = 0;
    for (const auto byte : bytes) value = value << 8U | byte;
    return value % below;
  }
  Nanos draw_time(Nanos least, Nanos most) {
    return least +
           milliseconds(draw(static_cast<std::uint64_t>((most - least) / milliseconds(1)) + 1));
  }

  void arrive(Nanos patience, Nanos duration) {
    const WaiterId id{++last_waiter_};
    waiting_.push_back({id, clock_.mono()});
    durations_[id] = duration;
    at(clock_.mono() + patience, [this, id] { leave(id); });
    send(Arrived{id});
  }

  void lose_a_warm_one() {
    if (state_.warm.empty()) return;
    const SandboxHandle lost = state_.warm[draw(state_.warm.size())];
    dead_.insert(lost);
    // The news takes a moment; a hand-out in between finds it dead.
    at(clock_.mono() + milliseconds(draw(3)), [this, lost] { send(WarmLost{lost}); });
  }

  void drain() { send(DrainAsked{}); }

  // Lets everything happen that is due within that time.
  void pass(Nanos span) {
    const Nanos end = clock_.mono() + span;
    for (;;) {
      const Nanos event_at = due_.empty() ? Nanos::max() : due_.begin()->first;
      const Nanos wake_at = wake_at_.value_or(Nanos::max());
      const Nanos next = std::min(event_at, wake_at);
      if (next > end) break;
      clock_.advance(std::max(Nanos{0}, next - clock_.mono()));
      if (event_at <= wake_at) {
        const auto happen = due_.begin()->second;
        due_.erase(due_.begin());
        happen();
      } else {
        ticks_ += 1;
        send(Tick{});
        ASSERT_TRUE(!wake_at_ || *wake_at_ > clock_.mono()) << "a tick asks for itself at once";
      }
    }
    clock_.advance(end - clock_.mono());
  }

 private:
  void at(Nanos when, std::function<void()> happen) { due_.emplace(when, std::move(happen)); }

  void leave(WaiterId id) {
    const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                    [id](const Waiter& waiter) { return waiter.id == id; });
    if (found == waiting_.end()) return;
    waiting_.erase(found);
    send(Left{id});
  }

  void send(const PoolEvent& event) {
    PoolFacts facts;
    facts.now = clock_.mono();
    facts.memory = {24_GiB, available_};
    facts.jitter_permille = static_cast<std::uint32_t>(draw(1000));
    const PoolDecision decision = decide(state_, options_, facts, event);
    wake_at_ = decision.wake_at;
    for (const PoolAction& action : decision.actions) {
      std::visit([this](const auto& known) { act(known); }, action);
    }
    check(facts);
  }

  void act(const StartCreate&) {
    creates_asked_ += 1;
    creating_ += 1;
    at(clock_.mono() + draw_time(latency_least_, latency_most_), [this] {
      creating_ -= 1;
      if (failing_) return send(CreateFailed{ErrorCode::setup_failed});
      ready_total_ += 1;
      send(SandboxReady{SandboxHandle{++last_sandbox_}});
    });
  }

  void act(const HandOut& action) {
    ASSERT_FALSE(waiting_.empty());
    ASSERT_EQ(waiting_.front().id, action.waiter.id) << "somebody was overtaken";
    ASSERT_EQ(waiting_.front().since, action.waiter.since);
    ASSERT_LT(clock_.mono() - action.waiter.since, options_.wait);
    ASSERT_TRUE(used_.insert(action.sandbox).second) << "a sandbox was handed out twice";
    waiting_.pop_front();
    running_ += 1;
    if (dead_.count(action.sandbox) != 0) {
      at(clock_.mono() + milliseconds(1), [this, waiter = action.waiter] {
        running_ -= 1;
        if (state_.phase == PoolPhase::serving) waiting_.push_front(waiter);
        send(RunNeverStarted{waiter});
      });
      return;
    }
    at(clock_.mono() + durations_.at(action.waiter.id), [this] {
      running_ -= 1;
      served_ += 1;
      send(RunEnded{});
    });
  }

  void act(const Refuse& action) {
    const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiter& waiter) {
      return waiter.id == action.waiter;
    });
    if (state_.phase != PoolPhase::serving) {
      ASSERT_EQ(action.code, ErrorCode::draining);
      if (found != waiting_.end()) waiting_.erase(found);
      return;
    }
    ASSERT_NE(found, waiting_.end()) << "refused somebody who does not wait";
    ASSERT_EQ(action.code, ErrorCode::busy);
    const bool line_was_full = waiting_.size() > options_.line_max && found + 1 == waiting_.end();
    const Nanos waited = clock_.mono() - found->since;
    ASSERT_TRUE(line_was_full || (waited >= options_.wait && waited < options_.wait + seconds(1)));
    refused_busy_ += 1;
    waiting_.erase(found);
  }

  void act(const Discard& action) { ASSERT_TRUE(used_.insert(action.sandbox).second); }

  void check(const PoolFacts& facts) {
    ASSERT_EQ(state_.running, running_);
    ASSERT_LE(state_.running, options_.runs_max);
    ASSERT_EQ(state_.creating, creating_);
    ASSERT_LE(state_.creating, options_.creates_parallel_max);
    ASSERT_EQ(state_.created_total, ready_total_);
    ASSERT_LE(state_.warm.size(), options_.target);
    ASSERT_LE(state_.warm.size() + state_.creating, options_.ceiling);
    ASSERT_EQ(state_.line.size(), waiting_.size()) << "a waiter was lost";
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      ASSERT_EQ(state_.line[i].id, waiting_[i].id);
      ASSERT_GT(state_.line[i].since + options_.wait, clock_.mono()) << "waits for too long";
    }
    for (const SandboxHandle sandbox : state_.warm) ASSERT_EQ(used_.count(sandbox), 0U);
    if (!waiting_.empty()) {
      ASSERT_TRUE(wake_at_) << "somebody waits and no tick is set";
      ASSERT_LE(*wake_at_, waiting_.front().since + options_.wait);
    }
    if (state_.phase != PoolPhase::serving) {
      ASSERT_TRUE(state_.warm.empty() && waiting_.empty());
      return;
    }
    const bool memory = memory_fits(options_, facts.memory, state_.running);
    ASSERT_FALSE(!waiting_.empty() && !state_.warm.empty() && memory &&
                 state_.running < options_.runs_max && clock_.mono() == facts.now &&
                 available_ > 20_GiB)
        << "a sandbox, memory and a request, and nothing happens";
    if (state_.warm.size() + state_.creating < options_.target && state_.creating == 0) {
      ASSERT_TRUE(wake_at_) << "the pool has too few sandboxes and no tick is set";
    }
  }

  PoolOptions options_;
  SeededRandom random_;
  FakeClock clock_;
  PoolState state_;
  std::optional<Nanos> wake_at_;
  std::multimap<Nanos, std::function<void()>> due_;
  std::deque<Waiter> waiting_;
  std::map<WaiterId, Nanos> durations_;
  std::set<SandboxHandle> used_;
  std::set<SandboxHandle> dead_;
  std::uint64_t last_waiter_ = 0;
  std::uint64_t last_sandbox_ = 0;
  std::uint64_t creates_asked_ = 0;
  std::uint64_t ready_total_ = 0;
  std::uint64_t ticks_ = 0;
  std::uint64_t served_ = 0;
  std::uint64_t refused_busy_ = 0;
  std::uint32_t creating_ = 0;
  std::uint32_t running_ = 0;
  bool failing_ = false;
  std::uint64_t available_ = 22_GiB;
  Nanos latency_least_ = milliseconds(50);
  Nanos latency_most_ = milliseconds(900);
};

// Changes how the world is, now and then.
void change_weather(World& world) {
  switch (world.draw(6)) {
    case 0: world.set_failing(true); break;
    case 1: world.set_available(world.draw(4) * 1_GiB); break;
    case 2: world.set_latency(seconds(1), seconds(20)); break;
    case 3: world.set_latency(milliseconds(0), milliseconds(5)); break;
    default:
      world.set_failing(false);
      world.set_available(22_GiB);
      world.set_latency(milliseconds(50), milliseconds(900));
  }
}

void one_step(World& world) {
  switch (world.draw(20)) {
    case 0: change_weather(world); break;
    case 1: world.lose_a_warm_one(); break;
    case 2: {  // a burst
      const std::uint64_t count = world.draw(60);
      for (std::uint64_t i = 0; i < count; ++i) {
        world.arrive(seconds(100), world.draw_time(milliseconds(1), seconds(4)));
      }
      break;
    }
    case 3: world.pass(world.draw_time(seconds(1), seconds(40))); break;
    default:
      world.arrive(world.draw_time(milliseconds(1), seconds(60)),
                   world.draw_time(milliseconds(1), seconds(2)));
      world.pass(world.draw_time(milliseconds(0), milliseconds(800)));
  }
}

TEST(PoolSimulation, HoldsItsPromisesInAnyWeather) {
  for (int i = 0; i < seeds(); ++i) {
    const std::uint64_t seed = first_seed() + static_cast<std::uint64_t>(i);
    SCOPED_TRACE("HUTCH_SIM_SEED=" + std::to_string(seed));
    PoolOptions options;
    options.runs_max = 5 + static_cast<std::uint32_t>(seed % 30);
    options.line_max = 40;
    options.target = 1 + static_cast<std::uint32_t>(seed % 4);
    options.ceiling = options.target;
    World world(seed, options);
    for (int step = 0; step < 2000; ++step) {
      ASSERT_NO_FATAL_FAILURE(one_step(world));
      if (testing::Test::HasFailure()) return;
    }
    // Good weather again: everybody who waits is served or refused, and the pool is full.
    world.set_failing(false);
    world.set_available(22_GiB);
    world.set_latency(milliseconds(50), milliseconds(900));
    world.pass(seconds(120));
    EXPECT_EQ(world.state().running, 0U);
    EXPECT_TRUE(world.state().line.empty());
    EXPECT_EQ(world.state().warm.size(), options.target);
    EXPECT_GT(world.served(), 500U);
    world.drain();
    world.arrive(seconds(1), seconds(1));
    world.pass(seconds(100));
    EXPECT_EQ(world.state().running + world.state().creating, 0U);
    EXPECT_TRUE(world.state().warm.empty());
    if (testing::Test::HasFailure()) return;
  }
}

TEST(PoolSimulation, FiftyAtOnceCostFiftySandboxes) {
  World world(first_seed(), {});
  world.pass(seconds(10));
  ASSERT_EQ(world.state().created_total, 3U);
  for (int i = 0; i < 50; ++i) world.arrive(seconds(100), milliseconds(300));
  EXPECT_EQ(world.state().running, 3U);
  world.pass(seconds(60));
  EXPECT_EQ(world.served(), 50U);
  EXPECT_EQ(world.state().created_total, 53U);
  EXPECT_EQ(world.state().warm.size(), 3U);
  EXPECT_EQ(world.state().running, 0U);
}

TEST(PoolSimulation, DoesNotSpinWhileCreatingFails) {
  World world(first_seed(), {});
  world.set_failing(true);
  world.set_latency(milliseconds(0), milliseconds(0));
  const std::uint64_t before = world.creates_asked();
  world.pass(seconds(10));
  // Two at the start, then one after each delay: 100 ms, doubled each time, at least half of it.
  EXPECT_LE(world.creates_asked() - before, 11U);
  const std::uint64_t later = world.creates_asked();
  world.pass(seconds(600));
  EXPECT_LE(world.creates_asked() - later, 121U);
  EXPECT_GE(world.creates_asked() - later, 59U);
  EXPECT_LE(world.ticks(), 140U);
}

TEST(PoolSimulation, DoesNotSpinWhileSandboxesDieAsSoonAsTheyAreReady) {
  World world(first_seed(), {});
  world.set_latency(milliseconds(0), milliseconds(0));
  for (int i = 0; i < 60'000; ++i) {
    while (!world.state().warm.empty()) {
      world.lose_a_warm_one();
      world.pass(milliseconds(3));
    }
    world.pass(milliseconds(10));
  }
  EXPECT_LE(world.creates_asked(), 600U);
}

TEST(PoolSimulation, RefusesAtThirtySecondsToTheTick) {
  World world(first_seed(), {});
  world.set_failing(true);
  world.pass(seconds(5));
  for (int i = 0; i < 7; ++i) world.arrive(seconds(100), seconds(1));
  world.arrive(seconds(2), seconds(1));  // leaves
  world.pass(milliseconds(29'999));
  EXPECT_EQ(world.refused_busy(), 0U);
  EXPECT_EQ(world.state().line.size(), 7U);
  world.pass(milliseconds(1));
  EXPECT_EQ(world.refused_busy(), 7U);
}

}  // namespace
}  // namespace hutch::service
