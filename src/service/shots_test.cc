#include "service/shots.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <set>

#include "engine/fake_engine.h"

namespace hutch::service {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Answer = Result<ShotAnswer>;

class ShotsTest : public testing::Test {
 protected:
  // Turns the loop until the condition holds; a test that would hang fails instead.
  template <class Condition>
  [[nodiscard]] bool until(Condition condition) {
    io_.restart();
    // Its handler may run after this function has returned.
    const auto late = std::make_shared<bool>(false);
    boost::asio::steady_timer limit(io_, seconds(20));
    limit.async_wait([late](const boost::system::error_code& ec) { *late = !ec; });
    while (!condition() && !*late && io_.run_one() > 0) {
    }
    limit.cancel();
    return condition();
  }

  void start() {
    shots_ = std::make_unique<Shots>(
        io_, engine_, clock_, random_,
        [] {
          return HostMemory{24_GiB, 22_GiB};
        },
        options_, ShotsObservers{});
    shots_->start([this](Status status) { filled_ = std::move(status); });
  }

  void start_filled() {
    start();
    ASSERT_TRUE(until([&] { return filled_.has_value(); }));
    ASSERT_TRUE(*filled_);
  }

  static boost::asio::awaitable<void> keep_answer(Shots& shots, model::ShotSpec spec,
                                                  std::shared_ptr<Cancellation> cancellation,
                                                  std::shared_ptr<std::optional<Answer>> slot) {
    Answer answer = co_await shots.run(std::move(spec), std::move(cancellation));
    slot->emplace(std::move(answer));
  }

  std::shared_ptr<std::optional<Answer>> fire(
      std::string code, std::shared_ptr<Cancellation> cancellation = nullptr) {
    model::ShotSpec spec;
    spec.code = std::move(code);
    auto slot = std::make_shared<std::optional<Answer>>();
    boost::asio::co_spawn(io_, keep_answer(*shots_, std::move(spec), std::move(cancellation), slot),
                          boost::asio::detached);
    return slot;
  }

  static boost::asio::awaitable<void> keep_live(Shots& shots, model::ShotSpec spec,
                                                std::shared_ptr<LiveShot> live,
                                                std::shared_ptr<std::optional<Answer>> slot) {
    Answer answer = co_await shots.run(std::move(spec), nullptr, std::move(live));
    slot->emplace(std::move(answer));
  }

  std::shared_ptr<std::optional<Answer>> follow(std::string code, std::shared_ptr<LiveShot> live) {
    model::ShotSpec spec;
    spec.code = std::move(code);
    auto slot = std::make_shared<std::optional<Answer>>();
    boost::asio::co_spawn(io_, keep_live(*shots_, std::move(spec), std::move(live), slot),
                          boost::asio::detached);
    return slot;
  }

  Answer run(std::string code) {
    const auto slot = fire(std::move(code));
    EXPECT_TRUE(until([&] { return slot->has_value(); }));
    return std::move(**slot);
  }

  boost::asio::io_context io_;
  engine::FakeEngine engine_{io_};
  SystemClock clock_;
  SeededRandom random_{7};
  ShotsOptions options_;
  std::unique_ptr<Shots> shots_;
  std::optional<Status> filled_;
};

TEST_F(ShotsTest, AnswersFromASandboxOfItsOwn) {
  start_filled();
  EXPECT_TRUE(shots_->ready());
  const auto answer = run("print(2**32)");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->result.out.head, "4294967296\n");
  EXPECT_EQ(answer->result.outcome.cause, model::Cause::exited);
  EXPECT_EQ(answer->sandbox_id.size(), 18U);
  EXPECT_EQ(answer->sandbox_id.find_first_not_of("abcdefghijklmnopqrstuvwxyz234567", 8),
            std::string::npos);
  ASSERT_TRUE(until([&] { return shots_->pool_numbers().warm == 3; }));
  EXPECT_EQ(shots_->pool_numbers().in_flight, 0U);
  EXPECT_EQ(shots_->pool_numbers().created_total, 4U);
}

TEST_F(ShotsTest, ARunThatIsFollowedGivesItsOutputWhileItGoesOn) {
  start_filled();
  const auto live = std::make_shared<LiveShot>();
  const auto slot = follow("#fake stdout a\n#fake stderr b\n#fake wait 20", live);
  ASSERT_TRUE(until([&] { return live->output.begun(); }));
  EXPECT_FALSE(slot->has_value());
  std::string text;
  ASSERT_TRUE(until([&] {
    while (const auto piece = live->output.take()) text += piece->bytes;
    return text == "a\nb\n";
  }));
  EXPECT_FALSE(slot->has_value());
  ASSERT_TRUE(until([&] { return slot->has_value(); }));
  ASSERT_TRUE(**slot);
  EXPECT_EQ((**slot)->sandbox_id, live->sandbox_id);
  EXPECT_EQ((**slot)->result.out.total_bytes, 2U);
  EXPECT_EQ((**slot)->result.out.head, "");
}

TEST_F(ShotsTest, ARunThatIsFollowedBeginsOnceHoweverManySandboxesAreTried) {
  start_filled();
  const auto live = std::make_shared<LiveShot>();
  int begun = 0;
  live->output.on_change([&] { begun += live->output.begun() ? 1 : 0; });
  const auto slot = follow("pass", live);
  for (const auto sandbox : engine_.warm()) engine_.kill_warm(sandbox);
  ASSERT_TRUE(until([&] { return slot->has_value(); }));
  EXPECT_TRUE(**slot);
  EXPECT_EQ(begun, 1);
  EXPECT_GE(engine_.used().size(), 2U);
}

TEST_F(ShotsTest, WhatFailsBeforeTheProgramHasItsCodeNeverBegins) {
  start_filled();
  for (const char* code : {"#fake reject no", "#fake unstarted"}) {
    const auto live = std::make_shared<LiveShot>();
    const auto slot = follow(code, live);
    ASSERT_TRUE(until([&] { return slot->has_value(); }));
    EXPECT_FALSE(**slot);
    EXPECT_FALSE(live->output.begun()) << code;
  }
}

TEST_F(ShotsTest, FiftyAtOnceGetFiftySandboxes) {
  start_filled();
  engine_.set_create_latency(milliseconds(1));
  std::vector<std::shared_ptr<std::optional<Answer>>> slots;
  for (int i = 0; i < 50; ++i) slots.push_back(fire("#fake wait 1\n#fake stdout hello"));
  std::set<std::string> ids;
  for (const auto& slot : slots) {
    ASSERT_TRUE(until([&] { return slot->has_value(); }));
    ASSERT_TRUE(**slot);
    ids.insert((**slot)->sandbox_id);
  }
  EXPECT_EQ(ids.size(), 50U);
  ASSERT_TRUE(until([&] { return shots_->pool_numbers().warm == 3; }));
  EXPECT_EQ(shots_->pool_numbers().created_total, 53U);
  EXPECT_EQ(shots_->pool_numbers().in_flight, 0U);
  EXPECT_EQ(engine_.live(), 3U);
}

TEST_F(ShotsTest, PassesFailuresOn) {
  start_filled();
  EXPECT_EQ(run("#fake reject it does not fit").error().message, "it does not fit");
  EXPECT_EQ(run("#fake lost").error().code, ErrorCode::sandbox_lost);
  EXPECT_EQ(run("#fake unreadable").error().code, ErrorCode::unreadable_reply);
  EXPECT_EQ(run("#fake unstarted").error().code, ErrorCode::sandbox_lost);
  EXPECT_EQ(shots_->stats().failed.at(ErrorCode::sandbox_lost), 2U);
  // The last one was tried in all that can have stood warm, and in two more.
  EXPECT_EQ(engine_.used().size(), 3U + options_.pool.target + 2U);
}

TEST_F(ShotsTest, ASandboxThatDiedUnnoticedCostsTheCallerNothing) {
  start_filled();
  // The engine's news of the deaths is posted, the request comes before it.
  const auto slot = fire("print(2**32)");
  for (const auto sandbox : engine_.warm()) engine_.kill_warm(sandbox);
  ASSERT_TRUE(until([&] { return slot->has_value(); }));
  const Answer& answer = **slot;
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->result.out.head, "4294967296\n");
  EXPECT_GE(engine_.used().size(), 2U);
  ASSERT_TRUE(until([&] { return shots_->pool_numbers().warm == 3; }));
  EXPECT_EQ(shots_->pool_numbers().created_total, 7U);
}

TEST_F(ShotsTest, WaitsInLineThenIsBusy) {
  options_.pool.wait = milliseconds(60);
  start_filled();
  engine_.set_create_error(Error{ErrorCode::setup_failed, Step::pivot, 1, "no"});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(run("print(2**32)"));
  const Nanos before = clock_.mono();
  const auto answer = run("print(2**32)");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::busy);
  EXPECT_EQ(answer.error().message, "no sandbox is available right now - try again shortly");
  EXPECT_GE(clock_.mono() - before, milliseconds(60));
  EXPECT_EQ(shots_->stats().waiting, 0U);
  EXPECT_FALSE(shots_->ready());
}

TEST_F(ShotsTest, AClientThatLeavesTheLineFreesItsPlace) {
  options_.pool.runs_max = 1;
  options_.pool.line_max = 1;
  start_filled();
  const auto hang_cancel = std::make_shared<Cancellation>();
  const auto hanging = fire("#fake hang", hang_cancel);
  ASSERT_TRUE(until([&] { return shots_->pool_numbers().in_flight == 1; }));
  const auto cancellation = std::make_shared<Cancellation>();
  const auto waiting = fire("print(2**32)", cancellation);
  ASSERT_TRUE(until([&] { return shots_->stats().waiting == 1; }));
  EXPECT_EQ(run("print(2**32)").error().code, ErrorCode::busy);
  cancellation->cancel();
  cancellation->cancel();
  ASSERT_TRUE(until([&] { return waiting->has_value(); }));
  EXPECT_EQ((**waiting).error().code, ErrorCode::cancelled);
  EXPECT_EQ(shots_->stats().waiting, 0U);
  const auto next = fire("print(2**32)");
  hang_cancel->cancel();
  ASSERT_TRUE(until([&] { return next->has_value() && hanging->has_value(); }));
  EXPECT_EQ((**hanging).error().code, ErrorCode::cancelled);
  EXPECT_TRUE(**next);
  EXPECT_EQ(shots_->pool_numbers().in_flight, 0U);
}

TEST_F(ShotsTest, ACancellationThatCameFirstUsesNoSandbox) {
  start_filled();
  const auto cancellation = std::make_shared<Cancellation>();
  cancellation->cancel();
  const auto slot = fire("print(2**32)", cancellation);
  ASSERT_TRUE(until([&] { return slot->has_value(); }));
  EXPECT_EQ((**slot).error().code, ErrorCode::cancelled);
  EXPECT_TRUE(engine_.used().empty());
}

TEST_F(ShotsTest, DrainEndsThoughTheLastRunNeverStarted) {
  start_filled();
  const auto slot = fire("#fake unstarted");
  ASSERT_TRUE(until([&] { return shots_->pool_numbers().in_flight == 1; }));
  bool drained = false;
  shots_->drain([&] { drained = true; });
  ASSERT_TRUE(until([&] { return drained; }));
  EXPECT_EQ((**slot).error().code, ErrorCode::draining);
}

TEST_F(ShotsTest, DrainLetsRunsFinish) {
  start_filled();
  const auto running = fire("#fake wait 30\nprint(2**32)");
  ASSERT_TRUE(until([&] { return shots_->pool_numbers().in_flight == 1; }));
  bool drained = false;
  shots_->drain([&] { drained = true; });
  EXPECT_FALSE(drained);
  EXPECT_FALSE(shots_->ready());
  EXPECT_EQ(run("print(2**32)").error().code, ErrorCode::draining);
  ASSERT_TRUE(until([&] { return drained; }));
  ASSERT_TRUE(until([&] { return running->has_value(); }));
  EXPECT_TRUE(**running);
  EXPECT_EQ(engine_.warm().size(), 0U);
}

TEST_F(ShotsTest, DrainEndsWhatRunsTooLongAndASecondOneEndsAllAtOnce) {
  options_.drain_ms = 30;
  start_filled();
  const auto hanging = fire("#fake hang");
  ASSERT_TRUE(until([&] { return shots_->pool_numbers().in_flight == 1; }));
  bool drained = false;
  shots_->drain([&] { drained = true; });
  ASSERT_TRUE(until([&] { return drained && hanging->has_value(); }));
  EXPECT_EQ((**hanging).error().code, ErrorCode::draining);
}

TEST_F(ShotsTest, ASecondDrainStopsAtOnce) {
  start_filled();
  const auto hanging = fire("#fake hang");
  ASSERT_TRUE(until([&] { return shots_->pool_numbers().in_flight == 1; }));
  int drained = 0;
  shots_->drain([&] { ++drained; });
  shots_->drain([&] { ++drained; });
  ASSERT_TRUE(until([&] { return hanging->has_value() && drained > 0; }));
  EXPECT_EQ(drained, 1);
}

TEST_F(ShotsTest, SaysWhenThePoolCannotBeFilled) {
  engine_.set_create_error(Error{ErrorCode::setup_failed, Step::pivot, 1, "cannot pivot"});
  start();
  ASSERT_TRUE(until([&] { return filled_.has_value(); }));
  ASSERT_FALSE(*filled_);
  EXPECT_EQ(filled_->error().step, Step::pivot);
  EXPECT_FALSE(shots_->ready());
}

TEST_F(ShotsTest, TheEndOfTheEngineEndsEverything) {
  start_filled();
  const auto hanging = fire("#fake hang");
  ASSERT_TRUE(until([&] { return shots_->pool_numbers().in_flight == 1; }));
  engine_.die();
  ASSERT_TRUE(until([&] { return hanging->has_value(); }));
  EXPECT_EQ((**hanging).error().code, ErrorCode::warden_gone);
  EXPECT_EQ(run("print(2**32)").error().code, ErrorCode::warden_gone);
  EXPECT_FALSE(shots_->ready());
  EXPECT_EQ(shots_->pool_numbers().in_flight, 0U);
}

TEST_F(ShotsTest, MayGoWhileSomebodyWaits) {
  start_filled();
  const auto hanging = fire("#fake hang");
  ASSERT_TRUE(until([&] { return shots_->pool_numbers().in_flight == 1; }));
  shots_.reset();
  EXPECT_FALSE(hanging->has_value());
}

}  // namespace
}  // namespace hutch::service
