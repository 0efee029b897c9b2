#include "cli/state_version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/sys.h"

namespace hutch::cli {
namespace {

using testing::HasSubstr;

std::string refusal(const Status& status) { return status ? "accepted" : status.error().message; }

class StateVersionTest : public testing::Test {
 protected:
  StateVersionTest()
      : directory_(testing::TempDir() + "hutch_version_" + std::to_string(::getpid()) + "/inner") {}
  ~StateVersionTest() override {
    std::filesystem::remove_all(std::filesystem::path(directory_).parent_path());
  }
  void write(std::string_view text) {
    ASSERT_TRUE(sys::make_directories(directory_, 0755));
    ASSERT_TRUE(sys::write_file_atomic(directory_ + "/version", text, 0644));
  }
  std::string written() { return sys::read_file(directory_ + "/version", 100).value_or("missing"); }

  std::string directory_;
};

TEST_F(StateVersionTest, ANewDirectoryGetsTheNumberOfThisProgram) {
  ASSERT_TRUE(record_state_version(directory_));
  EXPECT_EQ(written(), std::to_string(kStateVersion) + "\n");
  EXPECT_TRUE(record_state_version(directory_));
  EXPECT_TRUE(check_state_version(directory_));
}

TEST_F(StateVersionTest, LookingMakesNothing) {
  EXPECT_TRUE(check_state_version(directory_));
  EXPECT_FALSE(sys::exists(directory_));
}

TEST_F(StateVersionTest, ADirectoryFromBeforeTheFileIsReadAndGetsIt) {
  ASSERT_TRUE(sys::make_directories(directory_ + "/images", 0755));
  EXPECT_TRUE(check_state_version(directory_));
  EXPECT_EQ(written(), "missing");
  ASSERT_TRUE(record_state_version(directory_));
  EXPECT_EQ(written(), std::to_string(kStateVersion) + "\n");
  EXPECT_TRUE(sys::exists(directory_ + "/images"));
}

TEST_F(StateVersionTest, ANewerDirectoryIsRefusedAndStaysAsItIs) {
  const std::string newer = std::to_string(kStateVersion + 1);
  write(newer + "\n");
  for (const Status& status : {check_state_version(directory_), record_state_version(directory_)}) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::state_in_use);
    EXPECT_THAT(refusal(status), HasSubstr("has version " + newer));
    EXPECT_THAT(refusal(status), HasSubstr("reads version " + std::to_string(kStateVersion)));
    EXPECT_THAT(refusal(status), HasSubstr("install the newer hutch"));
  }
  EXPECT_EQ(written(), newer + "\n");
}

TEST_F(StateVersionTest, WhatIsNoNumberIsRefused) {
  for (const char* text : {"", "\n", "0", "-1", "1.0", "2x", "one", "99999999999999999999"}) {
    write(text);
    EXPECT_THAT(refusal(check_state_version(directory_)), HasSubstr("/version holds no number"))
        << text;
  }
}

TEST(StateVersion, AnOlderLayoutIsReadAsLongAsItIsAmongTheReadable) {
  const StateVersions versions{.oldest = 2, .newest = 4};
  EXPECT_EQ(judge_state_version("/s", "2\n", versions).value(), 2U);
  EXPECT_EQ(judge_state_version("/s", "4\n", versions).value(), 4U);
  const auto old = judge_state_version("/s", std::nullopt, versions);
  ASSERT_FALSE(old);
  EXPECT_THAT(old.error().message, HasSubstr("has version 1"));
  EXPECT_THAT(old.error().message, HasSubstr("reads versions 2 to 4"));
  EXPECT_THAT(old.error().message, HasSubstr("build the images again"));
}

}  // namespace
}  // namespace hutch::cli
