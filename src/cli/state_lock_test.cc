#include "cli/state_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/sys.h"

namespace hutch::cli {
namespace {

using testing::HasSubstr;

class StateLockTest : public testing::Test {
 protected:
  StateLockTest()
      : directory_(testing::TempDir() + "hutch_state_" + std::to_string(::getpid()) + "/inner") {}
  ~StateLockTest() override {
    std::filesystem::remove_all(std::filesystem::path(directory_).parent_path());
  }
  std::string text(const std::string& name) {
    return sys::read_file(directory_ + "/" + name, 100).value_or("missing");
  }

  std::string directory_;
};

TEST_F(StateLockTest, MakesTheDirectoryAndTakesItsFilesBack) {
  {
    StateLock lock = StateLock::take(directory_).value();
    ASSERT_TRUE(lock.write_pid("server", 123));
    EXPECT_EQ(text("server.pid"), "123\n");
    EXPECT_EQ(text("server.lock"), std::to_string(::getpid()) + "\n");
  }
  EXPECT_EQ(text("server.pid"), "missing");
}

TEST_F(StateLockTest, ASecondTakerIsToldWhoHoldsIt) {
  const StateLock first = StateLock::take(directory_).value();
  const Result<StateLock> second = StateLock::take(directory_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::state_in_use);
  EXPECT_THAT(second.error().message,
              HasSubstr("is in use by process " + std::to_string(::getpid())));
}

TEST_F(StateLockTest, StaleFilesAreHarmless) {
  ASSERT_TRUE(sys::make_directories(directory_, 0755));
  for (const char* name : {"server.lock", "server.pid", "warden.pid"}) {
    ASSERT_TRUE(sys::write_file_atomic(directory_ + "/" + name, "1\n", 0644));
  }
  EXPECT_TRUE(StateLock::take(directory_));
}

TEST_F(StateLockTest, WaitsForTheWardenOfAServerThatWasKilled) {
  ASSERT_TRUE(sys::make_directories(directory_, 0755));
  sys::Pipe ready = sys::pipe().value();
  sys::Pipe end = sys::pipe().value();
  const pid_t warden = ::fork();
  if (warden == 0) {
    end.write.reset();
    StateLock lock = StateLock::take(directory_).value();
    // Pretends that the taker was another process, which is dead.
    const bool fine =
        sys::write_file_atomic(directory_ + "/warden.pid", std::to_string(::getpid()), 0644) &&
        ::truncate((directory_ + "/server.lock").c_str(), 0) == 0 &&
        sys::write_all(ready.write.get(), "x");
    char byte = 0;
    ::_exit(fine && ::read(end.read.get(), &byte, 1) == 0 ? 0 : 1);
  }
  ready.write.reset();
  char byte = 0;
  ASSERT_EQ(::read(ready.read.get(), &byte, 1), 1);
  // The pipe's other end closes with this process's exit only, so let go first.
  end.write.reset();
  const Result<StateLock> lock = StateLock::take(directory_);
  int status = 0;
  ASSERT_EQ(::waitpid(warden, &status, 0), warden);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(lock) << lock.error().message;
}

TEST_F(StateLockTest, OneThatIsHeldIsNotWaitedFor) {
  std::optional<StateLock> first = StateLock::take_if_free(directory_).value();
  ASSERT_TRUE(first);
  EXPECT_FALSE(StateLock::take_if_free(directory_).value());
  first.reset();
  EXPECT_TRUE(StateLock::take_if_free(directory_).value());
}

TEST_F(StateLockTest, ADirectoryThatOthersCanWriteIsRefused) {
  ASSERT_TRUE(sys::make_directories(directory_, 0755));
  ASSERT_EQ(::chmod(directory_.c_str(), 0777), 0);
  const Result<StateLock> lock = StateLock::take(directory_);
  ASSERT_FALSE(lock);
  EXPECT_THAT(lock.error().message, HasSubstr("chmod go-w"));
}

TEST_F(StateLockTest, APathThatIsNoDirectoryIsNamed) {
  const Result<StateLock> lock = StateLock::take("/dev/null/state");
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().code, ErrorCode::state_in_use);
  EXPECT_THAT(lock.error().message, HasSubstr("the state directory /dev/null/state is not usable"));
}

}  // namespace
}  // namespace hutch::cli
