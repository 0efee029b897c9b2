// A server that has been taken over: whatever it says, the warden gives it sandboxes and nothing
// else, and ends in order.
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <random>
#include <thread>
#include <vector>

#include "base/sys.h"
#include "warden_client.h"

namespace hutch::kernel_test {
namespace {

using warden::Ask;
using warden::Tell;

class HostileServer : public KernelTest {
 protected:
  void send_raw(const std::string& bytes, std::vector<int> fds = {}) {
    ignore_error(sys::send_message(client().socket(), std::as_bytes(std::span(bytes)), fds));
  }

  // The connection is over and the warden has left in order.
  void expect_dismissed() {
    std::array<std::byte, 1024> buffer{};
    for (;;) {
      const auto message = sys::receive_message(client().socket(), buffer);
      if (!message || message->size == 0) break;
    }
    EXPECT_EQ(client().close(), 0);
  }
};

TEST_F(HostileServer, IsDismissedForAMessageOfAnotherSize) {
  const Sandbox sandbox = client().create();
  send_raw("x");
  expect_dismissed();
}

TEST_F(HostileServer, IsDismissedForAMessageThatIsTooLong) {
  send_raw(std::string(sizeof(warden::Request) + 1, '\1'));
  expect_dismissed();
}

TEST_F(HostileServer, IsDismissedForSendingADescriptor) {
  const warden::Request request;
  const std::string bytes(reinterpret_cast<const char*>(&request), sizeof request);
  send_raw(bytes, {STDERR_FILENO});
  expect_dismissed();
}

TEST_F(HostileServer, GainsNothingFromRequestsOutOfPlace) {
  Sandbox sandbox = client().create();
  for (const std::uint64_t handle : {std::uint64_t{0}, std::uint64_t{999}, ~std::uint64_t{0}}) {
    for (const Ask ask : {Ask::arm, Ask::stop, Ask::files_in, Ask::files_out, Ask::destroy}) {
      client().ask(ask, handle, 1000);
    }
  }
  client().ask(Ask::arm, sandbox.handle, 0);
  client().ask(Ask::arm, sandbox.handle, 0xffff'ffff);
  client().ask(static_cast<Ask>(77), sandbox.handle);
  client().ask(Ask::create, sandbox.handle);  // a handle that is in use
  client().ask(Ask::create, 0);
  const ProgramRun run = client().run(&sandbox, "print('still here')");
  EXPECT_EQ(run.out, "still here\n");
  client().destroy(sandbox);
  client().ask(Ask::destroy, sandbox.handle);
  client().ask(Ask::stop, sandbox.handle);
  Sandbox next = client().create();
  EXPECT_EQ(client().run(&next, "print(1)").out, "1\n");
  client().destroy(next);
}

TEST_F(HostileServer, CannotTakeAnImageThatIsNotTheirs) {
  warden::Request request;
  request.ask = Ask::create;
  request.handle = 1;
  request.image.fill(0xab);
  ASSERT_TRUE(sys::send_message(client().socket(), std::as_bytes(std::span(&request, 1)), {}));
  const Told told = client().next();
  EXPECT_EQ(told.report.tell, Tell::failed);
  EXPECT_EQ(told.report.sys_errno, EINVAL);
}

TEST_F(HostileServer, CannotTakeMoreThanTheSlots) {
  warden::WardenOptions options = new_options();
  options.slots_max = 2;
  restart(options);
  const Sandbox first = client().create();
  const Sandbox second = client().create();
  client().ask(Ask::create, 3);
  const Told told = client().next();
  EXPECT_EQ(told.report.tell, Tell::failed);
  EXPECT_EQ(told.report.sys_errno, EAGAIN);
  client().destroy(first);
  client().ask(Ask::create, 4);
  EXPECT_EQ(client().next().report.tell, Tell::created);
}

TEST_F(HostileServer, ThatNeverStopsTalkingKeepsNoDeadlineFromPassing) {
  const Sandbox sandbox = client().create();
  client().ask(Ask::arm, sandbox.handle, 200);
  std::atomic<bool> talks = true;
  std::vector<std::thread> talkers;
  for (int i = 0; i < 3; ++i) {
    talkers.emplace_back([&] {
      while (talks) client().ask(Ask::stop, 999);
    });
  }
  pollfd told{client().socket(), POLLIN, 0};
  const bool in_time = ::poll(&told, 1, 5000) == 1;
  talks = false;
  for (std::thread& talker : talkers) talker.join();
  EXPECT_TRUE(in_time) << "its program outlived its deadline";
  const warden::Report ended = client().next().report;
  EXPECT_EQ(ended.tell, Tell::ended);
  EXPECT_NE(ended.flags & warden::kTimedOut, 0U);
  EXPECT_LT(ended.duration_us, 2'000'000U);
  client().destroy(sandbox);
}

TEST_F(HostileServer, OfRandomRequestsLeavesNothing) {
  const char* text = std::getenv("HUTCH_SIM_SEED");
  const unsigned seed = text == nullptr ? 7 : static_cast<unsigned>(std::atoi(text));
  SCOPED_TRACE("HUTCH_SIM_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  for (std::uint64_t round = 1; round <= 200; ++round) {
    const auto ask = static_cast<Ask>(1 + random() % 6);
    client().ask(ask, ask == Ask::create ? round : 1 + random() % round, 1 + random() % 50);
  }
  EXPECT_EQ(client().close(), 0);
}

TEST_F(HostileServer, ThatIsKilledTakesEverythingWithIt) {
  // A process of its own, so that it can be killed: it makes sandboxes and never reads a report.
  const warden::WardenOptions options = new_options();
  std::array<int, 2> told{};
  ASSERT_EQ(::pipe(told.data()), 0);
  const pid_t server = ::fork();
  if (server == 0) {
    WardenClient client(options);
    const Sandbox sandbox = client.create();
    const char byte = 1;
    if (::write(told[1], &byte, 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(told[0], &byte, 1), 1);
  ::kill(server, SIGKILL);
  ::waitpid(server, nullptr, 0);
  ::close(told[0]);
  ::close(told[1]);
  // Its warden is ours now, and ends by itself: bounded by the test's own timeout.
  int status = 0;
  ASSERT_GT(::waitpid(-1, &status, 0), 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace hutch::kernel_test
