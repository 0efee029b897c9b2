#include "engine/outcome_decide.h"

#include <gtest/gtest.h>

namespace hutch::engine {
namespace {

using model::Cause;
using namespace warden;

struct Row {
  const char* what;
  std::uint32_t flags;
  bool by_signal;
  int status;
  Cause cause;
  std::optional<std::uint64_t> limit;
};

constexpr std::uint64_t kMemory = 512_MiB;
constexpr std::uint64_t kDisk = 256_MiB;

const Row kRows[] = {
    {"a good end", 0, false, 0, Cause::exited, {}},
    {"sys.exit(3)", 0, false, 3, Cause::exited, {}},
    {"a crash", 0, true, 11, Cause::signaled, {}},
    {"its own SIGKILL", 0, true, 9, Cause::signaled, {}},
    {"the deadline", kTimedOut, true, 9, Cause::timeout, 7},
    {"the deadline, flushed in time", kTimedOut, false, 0, Cause::timeout, 7},
    {"deadline, then memory", kTimedOut | kMemoryKilled, true, 9, Cause::timeout, 7},
    {"deadline, then stop", kTimedOut | kStopped, true, 9, Cause::timeout, 7},
    {"deadline on a full disk", kTimedOut | kDiskFull, true, 9, Cause::timeout, 7},
    {"stopped", kStopped, true, 9, Cause::cancelled, {}},
    {"stopped at the memory limit", kStopped | kMemoryKilled, true, 9, Cause::cancelled, {}},
    {"memory", kMemoryKilled, true, 9, Cause::memory, kMemory},
    {"a child's memory took the parent", kMemoryKilled, false, 1, Cause::memory, kMemory},
    {"a child's memory, parent done", kMemoryKilled, false, 0, Cause::exited, {}},
    {"memory and forks", kMemoryKilled | kProcessDenied, true, 9, Cause::memory, kMemory},
    {"memory and disk", kMemoryKilled | kDiskFull, false, 1, Cause::memory, kMemory},
    {"no fork, and it failed", kProcessDenied, false, 1, Cause::processes, 128},
    {"no fork, and a signal", kProcessDenied, true, 6, Cause::processes, 128},
    {"no fork, but it coped", kProcessDenied, false, 0, Cause::exited, {}},
    {"disk full, and it failed", kDiskFull, false, 1, Cause::disk, kDisk},
    {"disk full, but it coped", kDiskFull, false, 0, Cause::exited, {}},
    {"no inodes, and it failed", kInodesFull, false, 1, Cause::disk, 65536},
    {"blocks and inodes", kDiskFull | kInodesFull, false, 1, Cause::disk, kDisk},
    {"forks and disk", kProcessDenied | kDiskFull, false, 1, Cause::processes, 128},
    {"an empty directory means nothing", kWorkEmpty, false, 1, Cause::exited, {}},
};

TEST(DecideOutcome, FollowsTheTable) {
  for (const Row& row : kRows) {
    Report ended;
    ended.tell = Tell::ended;
    ended.flags = row.flags;
    ended.by_signal = row.by_signal ? 1 : 0;
    ended.status = row.status;
    ended.cpu_us = 12'999;
    ended.memory_peak_bytes = 77;
    const auto outcome = decide_outcome(ended, {}, 7);
    EXPECT_EQ(outcome.cause, row.cause) << row.what;
    EXPECT_EQ(outcome.limit, row.limit) << row.what;
    EXPECT_EQ(outcome.by_signal, row.by_signal) << row.what;
    EXPECT_EQ(outcome.status, row.status) << row.what;
    EXPECT_EQ(outcome.cpu_ms, 12U);
    EXPECT_EQ(outcome.memory_peak_bytes, 77U);
  }
}

}  // namespace
}  // namespace hutch::engine
