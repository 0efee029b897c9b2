#include "cli/shutdown.h"

#include <gtest/gtest.h>

#include <string>

namespace hutch::cli {
namespace {

class ShutdownTest : public testing::Test {
 protected:
  ShutdownTest() : log_(clock_, {.fd = -1}), shutdown_(io_, log_) {
    shutdown_.set_calls({.refuse_new = [this] { story_ += "refuse "; },
                         .drain_runs =
                             [this](std::function<void()> drained) {
                               story_ += "drain ";
                               drained_ = std::move(drained);
                             },
                         .stop_runs = [this] { story_ += "stop "; },
                         .connections = [this] { return connections_-- > 0 ? 1U : 0U; },
                         .close = [this] { story_ += "close "; }});
  }

  FakeClock clock_;
  Log log_;
  boost::asio::io_context io_;
  std::string story_;
  std::function<void()> drained_;
  int connections_ = 0;
  Shutdown shutdown_;
};

TEST_F(ShutdownTest, RunsFinishThenAnswersGoOutThenTheLoopEnds) {
  connections_ = 3;
  const auto hold = boost::asio::make_work_guard(io_);
  shutdown_.stop();
  EXPECT_EQ(story_, "refuse drain ");
  drained_();
  EXPECT_EQ(story_, "refuse drain ");
  io_.run();
  EXPECT_EQ(story_, "refuse drain close ");
  EXPECT_EQ(shutdown_.exit_code(), 0);
}

TEST_F(ShutdownTest, TheSecondCallEndsRunsAndFurtherOnesChangeNothing) {
  for (int i = 0; i < 4; ++i) shutdown_.stop();
  EXPECT_EQ(story_, "refuse drain stop ");
}

TEST_F(ShutdownTest, AFailureDoesNotWaitAndKeepsItsExitCode) {
  shutdown_.fail(70);
  EXPECT_EQ(story_, "refuse drain stop ");
  drained_();
  io_.run();
  EXPECT_EQ(shutdown_.exit_code(), 70);
}

}  // namespace
}  // namespace hutch::cli
