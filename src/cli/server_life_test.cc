#include "cli/server_life.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "base/sys.h"

namespace hutch::cli {
namespace {

class ServerLifeTest : public testing::Test {
 protected:
  ServerLifeTest() : directory_(testing::TempDir() + "hutch_life_" + std::to_string(::getpid())) {}
  ~ServerLifeTest() override { std::filesystem::remove_all(directory_); }

  ServerLife life() const {
    ServerLife life;
    life.config.state_dir = directory_;
    return life;
  }
  ServerLife life_of_one_connection() const {
    ServerLife one = life();
    one.connection = std::move(sys::socket_pair(SOCK_STREAM).value().first);
    return one;
  }

  std::string directory_;
};

TEST_F(ServerLifeTest, OneThatListensLivesInTheStateDirectory) {
  ServerLife listening = life();
  EXPECT_TRUE(listening.listens());
  ASSERT_TRUE(take_state(listening));
  EXPECT_EQ(listening.config.state_dir, directory_);
}

TEST_F(ServerLifeTest, OneForAConnectionTakesTheFirstFreePlaceBelow) {
  const StateLock daemon = StateLock::take(directory_).value();
  ServerLife first = life_of_one_connection();
  ServerLife second = life_of_one_connection();
  ServerLife third = life_of_one_connection();
  std::optional<StateLock> of_first(take_state(first).value());
  const StateLock of_second = take_state(second).value();
  EXPECT_EQ(first.config.state_dir, directory_ + "/run/0");
  EXPECT_EQ(second.config.state_dir, directory_ + "/run/1");
  of_first.reset();
  const StateLock of_third = take_state(third).value();
  EXPECT_EQ(third.config.state_dir, directory_ + "/run/0");
}

TEST_F(ServerLifeTest, NoPlaceIsLeftForTheSixtyFifth) {
  std::vector<StateLock> held;
  for (int number = 0; number < 64; ++number) {
    ServerLife one = life_of_one_connection();
    held.push_back(take_state(one).value());
  }
  ServerLife late = life_of_one_connection();
  const auto lock = take_state(late);
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().code, ErrorCode::state_in_use);
  EXPECT_THAT(lock.error().message, testing::HasSubstr("start `hutch serve`"));
}

}  // namespace
}  // namespace hutch::cli
