// One real sandbox after the other: how it is made, what it says about its program's end, and that
// nothing of it is left.
#include <signal.h>

#include <filesystem>

#include "warden_client.h"

namespace hutch::kernel_test {
namespace {

using warden::Ask;
using warden::Tell;

class WardenTest : public KernelTest {
 protected:
};

TEST_F(WardenTest, StartsAndEndsWithNothingLeft) { EXPECT_EQ(client().close(), 0); }

TEST_F(WardenTest, RunsCodeAndTellsItsExitStatus) {
  Sandbox sandbox = client().create();
  const ProgramRun run = client().run(&sandbox, "print(2**32)\nraise SystemExit(7)");
  EXPECT_EQ(run.out, "4294967296\n");
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(run.ended.by_signal, 0);
  EXPECT_EQ(run.ended.status, 7);
  EXPECT_NE(run.ended.flags & warden::kWorkEmpty, 0U);
  client().destroy(sandbox);
}

TEST_F(WardenTest, TellsDeathBySignal) {
  Sandbox sandbox = client().create();
  const ProgramRun run = client().run(&sandbox, "import os\nos.kill(os.getpid(), 11)");
  EXPECT_EQ(run.ended.by_signal, 1);
  EXPECT_EQ(run.ended.status, SIGSEGV);
  client().destroy(sandbox);
}

TEST_F(WardenTest, KillsAtTheDeadlineAndKeepsBufferedText) {
  Sandbox sandbox = client().create();
  const ProgramRun run = client().run(&sandbox, "print('before')\nwhile True: pass", 500);
  EXPECT_EQ(run.out, "before\n");
  EXPECT_NE(run.ended.flags & warden::kTimedOut, 0U);
  EXPECT_GE(run.ended.duration_us, 500'000U);
  EXPECT_LE(run.ended.duration_us, static_cast<std::uint64_t>(600'000 * slack()));
  client().destroy(sandbox);
}

TEST_F(WardenTest, NamesTheMemoryKill) {
  Sandbox sandbox = client().create();
  const ProgramRun run = client().run(&sandbox, "b = bytearray(700 * 1024 * 1024)");
  EXPECT_EQ(run.ended.by_signal, 1);
  EXPECT_EQ(run.ended.status, SIGKILL);
  EXPECT_NE(run.ended.flags & warden::kMemoryKilled, 0U);
  EXPECT_GT(run.ended.memory_peak_bytes, 500ULL << 20U);
  client().destroy(sandbox);
}

TEST_F(WardenTest, CountsTheProcessorTimeOfTheRunAlone) {
  Sandbox sandbox = client().create();
  const ProgramRun busy = client().run(&sandbox,
                                       "import time\n"
                                       "end = time.process_time() + 0.5\n"
                                       "while time.process_time() < end: pass\n");
  EXPECT_GE(busy.ended.cpu_us, 500'000U);
  client().destroy(sandbox);
  sandbox = client().create();
  const ProgramRun idle = client().run(&sandbox, "pass");
  EXPECT_LT(idle.ended.cpu_us, busy.ended.cpu_us);
  client().destroy(sandbox);
}

TEST_F(WardenTest, SeesThatTheWorkingDirectoryHasAnEntry) {
  Sandbox sandbox = client().create();
  const ProgramRun run = client().run(&sandbox, "open('x', 'w').close()");
  EXPECT_EQ(run.ended.flags & warden::kWorkEmpty, 0U);
  client().destroy(sandbox);
}

TEST_F(WardenTest, EndsEverythingWhenItsSocketCloses) {
  Sandbox first = client().create();
  const Sandbox second = client().create();
  EXPECT_EQ(client().close(), 0);
}

TEST_F(WardenTest, ShowsTheProgramItsOwnIdentity) {
  Sandbox sandbox = client().create();
  const ProgramRun run =
      client().run(&sandbox,
                   "import os, socket\n"
                   "print(os.getuid(), os.getpid(), os.getcwd(), os.environ['HOME'])\n"
                   "print(socket.gethostname(), os.cpu_count(), __file__)\n"
                   "print(sorted(os.listdir('/proc/self/fd')), os.listdir('.'))\n"
                   "print(open('/proc/self/cgroup').read().count(':/\\n'))\n");
  EXPECT_EQ(run.out.substr(0, 28), "1000 2 /work /home/sandbox\ns") << run.out << run.err;
  client().destroy(sandbox);
}

}  // namespace
}  // namespace hutch::kernel_test
