#include "image/spawn.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"
#include "image/scratch_directory.h"

namespace hutch::image {
namespace {

using ::testing::ElementsAre;

Command shell(const std::string& script) {
  Command command;
  command.argv = {"sh", "-c", script};
  return command;
}

TEST(ImageSpawn, CutsOutputIntoLinesAndKeepsTheLog) {
  const ScratchDirectory scratch;
  std::vector<std::string> lines;
  Command command = shell("printf 'one\\ntwo\\n'; echo oops >&2; exit 3");
  command.log_path = scratch.path("log");
  command.on_line = [&](std::string_view line) { lines.emplace_back(line); };
  const auto ended = run(command);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->code, 3);
  EXPECT_EQ(ended->tail, "oops\n");
  EXPECT_FALSE(ended->disk_full);
  EXPECT_THAT(lines, ElementsAre("one", "two"));
  EXPECT_EQ(scratch.read("log"), "oops\n");
}

TEST(ImageSpawn, NoticesAFullDiskAcrossTwoWrites) {
  const auto ended = run(shell("printf 'x: No space' >&2; sleep 0.1; echo ' left on device' >&2"));
  ASSERT_TRUE(ended);
  EXPECT_TRUE(ended->disk_full);
}

TEST(ImageSpawn, KeepsOnlyTheEndOfALongLog) {
  const auto ended = run(shell("yes 0123456789 | head -c 300000 >&2; echo end >&2"));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->tail.size(), 65536U);
  EXPECT_TRUE(ended->tail.ends_with("end\n"));
}

TEST(ImageSpawn, DeathBySignalIs128AndMore) {
  const auto ended = run(shell("kill -9 $$"));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->code, 128 + SIGKILL);
}

TEST(ImageSpawn, AMissingProgramIsNotFound) {
  Command command;
  command.argv = {"no-such-program-anywhere"};
  EXPECT_EQ(run(command).error().code, ErrorCode::not_found);
  EXPECT_TRUE(find_program("no-such-program-anywhere").empty());
  EXPECT_TRUE(find_program("sh").ends_with("/sh"));
}

TEST(ImageSpawn, ABackgroundProcessDoesNotHoldItUp) {
  const auto ended = run(shell("sleep 60 & echo $! >&2"));
  ASSERT_TRUE(ended);
  ::kill(std::stoi(ended->tail), SIGKILL);
}

TEST(ImageSpawn, AnInterruptTakesTheWholeGroupAlong) {
  auto wire = sys::pipe();
  ASSERT_TRUE(wire);
  Fd inner;
  Command command = shell("sleep 60 & echo $!; wait");
  command.interrupt_fd = wire->read.get();
  // The inner process is known to run by the time the interrupt comes.
  command.on_line = [&](std::string_view line) {
    const int pid = std::stoi(std::string(line));
    inner = Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    ASSERT_TRUE(sys::write_all(wire->write.get(), "x"));
  };
  const auto ended = run(command);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::cancelled);
  ASSERT_TRUE(inner);
  pollfd gone{inner.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&gone, 1, 10'000), 1);
}

}  // namespace
}  // namespace hutch::image
