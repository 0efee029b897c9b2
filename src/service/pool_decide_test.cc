#include "service/pool_decide.h"

#include <gtest/gtest.h>

namespace hutch::service {
namespace {

using engine::SandboxHandle;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr HostMemory kPlenty{24_GiB, 22_GiB};

class PoolDecide : public testing::Test {
 protected:
  PoolDecision send(const PoolEvent& event) {
    return decide(state_, options_, {now_, memory_, jitter_}, event);
  }

  template <class Kind>
  static int count(const PoolDecision& decision) {
    int found = 0;
    for (const auto& action : decision.actions) found += std::holds_alternative<Kind>(action);
    return found;
  }

  template <class Kind>
  static Kind only(const PoolDecision& decision) {
    EXPECT_EQ(count<Kind>(decision), 1);
    for (const auto& action : decision.actions) {
      if (const auto* known = std::get_if<Kind>(&action)) return *known;
    }
    return {};
  }

  void fill() {
    send(Started{});
    for (std::uint64_t i = 1; i <= options_.target; ++i) send(SandboxReady{SandboxHandle{i}});
  }

  PoolState state_;
  PoolOptions options_;
  Nanos now_ = seconds(1000);
  HostMemory memory_ = kPlenty;
  std::uint32_t jitter_ = 999;
};

TEST_F(PoolDecide, FillsWithBoundedParallelism) {
  EXPECT_EQ(count<StartCreate>(send(Started{})), 2);
  EXPECT_FALSE(state_.filled_once);
  EXPECT_EQ(count<StartCreate>(send(SandboxReady{SandboxHandle{1}})), 1);
  EXPECT_EQ(count<StartCreate>(send(SandboxReady{SandboxHandle{2}})), 0);
  EXPECT_EQ(count<StartCreate>(send(SandboxReady{SandboxHandle{3}})), 0);
  EXPECT_TRUE(state_.filled_once);
  EXPECT_EQ(state_.created_total, 3U);
}

TEST_F(PoolDecide, IsFilledWhenItsTargetIsLoweredToWhatItHas) {
  send(Started{});
  send(SandboxReady{SandboxHandle{1}});
  EXPECT_FALSE(state_.filled_once);
  options_.target = 1;
  send(Tick{});
  EXPECT_TRUE(state_.filled_once);
}

TEST_F(PoolDecide, APoolWithoutATargetMakesOneForWhoWaits) {
  options_.target = 0;
  options_.ceiling = 1;
  EXPECT_EQ(count<StartCreate>(send(Started{})), 0);
  EXPECT_EQ(count<StartCreate>(send(Arrived{WaiterId{1}})), 1);
  EXPECT_EQ(count<StartCreate>(send(Tick{})), 0);
  const auto ready = send(SandboxReady{SandboxHandle{1}});
  EXPECT_EQ(only<HandOut>(ready).waiter.id, WaiterId{1});
  EXPECT_EQ(count<StartCreate>(ready), 0);
  EXPECT_EQ(count<StartCreate>(send(RunEnded{})), 0);
}

TEST_F(PoolDecide, HandsOutTheOldestAndReplacesIt) {
  fill();
  const auto decision = send(Arrived{WaiterId{1}});
  EXPECT_EQ(only<HandOut>(decision).sandbox, SandboxHandle{1});
  EXPECT_EQ(count<StartCreate>(decision), 1);
  EXPECT_EQ(state_.running, 1U);
  EXPECT_EQ(state_.warm.size(), 2U);
}

TEST_F(PoolDecide, ADeadWarmSandboxIsNotHandedOutAndIsReplaced) {
  fill();
  const auto lost = send(WarmLost{SandboxHandle{1}});
  EXPECT_EQ(count<StartCreate>(lost), 0);
  EXPECT_EQ(only<HandOut>(send(Arrived{WaiterId{1}})).sandbox, SandboxHandle{2});
  ASSERT_TRUE(lost.wake_at);
  now_ = *lost.wake_at;
  EXPECT_EQ(count<StartCreate>(send(Tick{})), 2);
  // News about a sandbox that is not warm any more changes nothing.
  const auto late = send(WarmLost{SandboxHandle{2}});
  EXPECT_TRUE(late.actions.empty());
  EXPECT_EQ(state_.losses_in_a_row, 1U);
}

TEST_F(PoolDecide, BacksOffTwiceAsLongEachTimeUpToTheMost) {
  options_.creates_parallel_max = 1;
  Nanos expected = milliseconds(100);
  send(Started{});
  for (int i = 0; i < 12; ++i) {
    const auto decision = send(CreateFailed{ErrorCode::setup_failed});
    ASSERT_TRUE(decision.wake_at);
    const Nanos delay = *decision.wake_at - now_;
    EXPECT_GT(delay, expected * 99 / 100);
    EXPECT_LE(delay, expected);
    now_ = *decision.wake_at;
    EXPECT_EQ(count<StartCreate>(send(Tick{})), 1);
    expected = std::min(expected * 2, Nanos(seconds(10)));
  }
  jitter_ = 0;
  EXPECT_EQ(*send(CreateFailed{ErrorCode::setup_failed}).wake_at - now_, seconds(5));
  now_ += seconds(5);
  send(Tick{});
  send(SandboxReady{SandboxHandle{1}});
  EXPECT_EQ(state_.failures_in_a_row, 0U);
}

TEST_F(PoolDecide, NoFreeSlotIsNotAFailure) {
  send(Started{});
  const auto decision = send(CreateFailed{ErrorCode::busy});
  EXPECT_EQ(state_.failures_in_a_row, 0U);
  EXPECT_EQ(*decision.wake_at, now_ + milliseconds(100));
}

TEST_F(PoolDecide, AFullLineRefusesAtOnce) {
  options_.line_max = 2;
  send(Started{});
  for (std::uint64_t i = 1; i <= 2; ++i) EXPECT_EQ(count<Refuse>(send(Arrived{WaiterId{i}})), 0);
  const auto refuse = only<Refuse>(send(Arrived{WaiterId{3}}));
  EXPECT_EQ(refuse.waiter, WaiterId{3});
  EXPECT_EQ(refuse.code, ErrorCode::busy);
  send(Left{WaiterId{1}});
  EXPECT_EQ(count<Refuse>(send(Arrived{WaiterId{4}})), 0);
}

TEST_F(PoolDecide, RunsMaxHoldsTheLine) {
  options_.runs_max = 2;
  fill();
  for (std::uint64_t i = 1; i <= 3; ++i) send(Arrived{WaiterId{i}});
  EXPECT_EQ(state_.running, 2U);
  EXPECT_EQ(state_.line.size(), 1U);
  EXPECT_EQ(only<HandOut>(send(RunEnded{})).waiter.id, WaiterId{3});
}

TEST_F(PoolDecide, WaitsForMemoryAndLooksAgain) {
  fill();
  memory_.available_bytes = 2_GiB;  // the reserve alone is 2.4 GiB
  const auto decision = send(Arrived{WaiterId{1}});
  EXPECT_EQ(count<HandOut>(decision), 0);
  EXPECT_EQ(*decision.wake_at, now_ + options_.memory_poll);
  memory_ = kPlenty;
  now_ += options_.memory_poll;
  EXPECT_EQ(count<HandOut>(send(Tick{})), 1);
}

TEST_F(PoolDecide, OneEventDoesNotPromiseTheSameMemoryTwice) {
  fill();
  memory_.available_bytes = 1_GiB;
  send(Arrived{WaiterId{1}});
  send(Arrived{WaiterId{2}});
  memory_.available_bytes = 24_GiB / 100 * 10 + 600_MiB;
  EXPECT_EQ(count<HandOut>(send(Tick{})), 1);
}

TEST_F(PoolDecide, ASmallerTargetGivesTheYoungestUp) {
  fill();
  options_.target = options_.ceiling = 1;
  const auto decision = send(Tick{});
  EXPECT_EQ(count<Discard>(decision), 2);
  EXPECT_EQ(count<StartCreate>(decision), 0);
  ASSERT_EQ(state_.warm.size(), 1U);
  EXPECT_EQ(state_.warm.front(), SandboxHandle{1});
}

TEST_F(PoolDecide, ALargerTargetIsFilled) {
  fill();
  options_.target = options_.ceiling = 5;
  EXPECT_EQ(count<StartCreate>(send(Tick{})), 2);
}

TEST_F(PoolDecide, ASandboxThatCameTooLateForASmallerTargetIsGivenUp) {
  send(Started{});
  send(SandboxReady{SandboxHandle{1}});
  options_.target = options_.ceiling = 1;
  EXPECT_EQ(only<Discard>(send(SandboxReady{SandboxHandle{2}})).sandbox, SandboxHandle{2});
  EXPECT_EQ(state_.created_total, 2U);
}

TEST(MemoryFits, CountsEveryRunAtItsLimitBesideTheReserve) {
  PoolOptions options;
  options.run_memory_bytes = 1000;
  options.memory_reserve_percent = 10;
  EXPECT_TRUE(memory_fits(options, {10'000, 10'000}, 8));
  EXPECT_FALSE(memory_fits(options, {10'000, 10'000}, 9));
  EXPECT_TRUE(memory_fits(options, {10'000, 2'000}, 0));
  EXPECT_FALSE(memory_fits(options, {10'000, 1'999}, 0));
  EXPECT_FALSE(memory_fits(options, {0, 0}, 0));
}

TEST_F(PoolDecide, RefusesAfterTheWaitAndNotBefore) {
  send(Started{});
  const auto arrived = send(Arrived{WaiterId{1}});
  EXPECT_EQ(*arrived.wake_at, now_ + seconds(30));
  now_ += seconds(30) - Nanos(1);
  EXPECT_EQ(count<Refuse>(send(Tick{})), 0);
  now_ += Nanos(1);
  // A sandbox that gets ready in this very moment is too late for it, and stays warm.
  EXPECT_EQ(only<Refuse>(send(SandboxReady{SandboxHandle{1}})).code, ErrorCode::busy);
  EXPECT_EQ(state_.warm.size(), 1U);
}

TEST_F(PoolDecide, ARunThatNeverStartedGoesToTheHeadOfTheLine) {
  options_.runs_max = 1;
  fill();
  const auto first = only<HandOut>(send(Arrived{WaiterId{1}}));
  send(Arrived{WaiterId{2}});
  now_ += seconds(1);
  const auto again = only<HandOut>(send(RunNeverStarted{first.waiter}));
  EXPECT_EQ(again.waiter.id, WaiterId{1});
  EXPECT_EQ(again.waiter.since, now_ - seconds(1));
  EXPECT_NE(again.sandbox, first.sandbox);
  EXPECT_EQ(state_.running, 1U);
}

TEST_F(PoolDecide, DrainRefusesAndGivesUpWhatIsWarm) {
  options_.runs_max = 1;
  fill();
  send(Arrived{WaiterId{1}});
  send(Arrived{WaiterId{2}});
  const auto drain = send(DrainAsked{});
  EXPECT_EQ(only<Refuse>(drain).code, ErrorCode::draining);
  EXPECT_EQ(count<Discard>(drain), 2);
  EXPECT_EQ(count<StartCreate>(drain), 0);
  EXPECT_EQ(only<Refuse>(send(Arrived{WaiterId{3}})).code, ErrorCode::draining);
  EXPECT_EQ(only<Discard>(send(SandboxReady{SandboxHandle{9}})).sandbox, SandboxHandle{9});
  EXPECT_EQ(state_.running, 1U);
  EXPECT_TRUE(send(RunEnded{}).actions.empty());
  EXPECT_EQ(state_.running, 0U);
}

TEST_F(PoolDecide, WithoutAnEngineEverybodyIsToldAtOnce) {
  options_.runs_max = 0;
  fill();
  send(Arrived{WaiterId{1}});
  EXPECT_EQ(only<Refuse>(send(EngineGone{})).code, ErrorCode::warden_gone);
  EXPECT_EQ(only<Refuse>(send(Arrived{WaiterId{2}})).code, ErrorCode::warden_gone);
  EXPECT_TRUE(send(CreateFailed{ErrorCode::warden_gone}).actions.empty());
}

}  // namespace
}  // namespace hutch::service
