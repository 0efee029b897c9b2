// Plays the server against a real warden on the real kernel, and looks at what is left afterwards.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "warden/protocol.h"
#include "warden/start.h"

namespace hutch::kernel_test {

// Upper bounds of waits are multiplied by this: HUTCH_TEST_SLACK, default 1.
double slack();

// Limits as a sandbox has them by default, on the image named by HUTCH_TEST_IMAGE_STATE (a state
// directory, default /var/lib/hutch).
warden::WardenOptions default_options();

struct Told {
  warden::Report report;
  std::vector<Fd> fds;
};

struct Sandbox {
  std::uint64_t handle = 0;
  Fd code;
  Fd out;
  Fd err;
  warden::Report created;
};

struct ProgramRun {
  warden::Report ended;
  std::string out;
  std::string err;
};

class WardenClient {
 public:
  // Fails the test when the warden does not start.
  explicit WardenClient(const warden::WardenOptions& options);
  ~WardenClient();

  pid_t pid() const { return connection_.pid; }
  int socket() const { return connection_.socket.get(); }
  const std::string& state_dir() const { return options_.state_dir; }

  void ask(warden::Ask ask, std::uint64_t handle, std::uint32_t timeout_ms = 0);
  // The next report; fails the test after `seconds` x slack.
  Told next(double seconds = 30);

  // A sandbox that waits for code, its interpreter up with nothing imported.
  Sandbox create();
  // Runs the code to its end and reads both streams.
  ProgramRun run(Sandbox* sandbox, const std::string& code, std::uint32_t timeout_ms = 20'000);
  void destroy(const Sandbox& sandbox);

  // Ends the warden by closing its socket and waits for it: its exit status.
  int close();

 private:
  warden::WardenOptions options_;
  warden::WardenConnection connection_;
  std::uint64_t last_handle_ = 0;
  bool closed_ = false;
};

// Ends each test with the audit that nothing is left of the wardens it started: no mount, no
// control group of their names, no descriptor, no process. Other instances may run on the host
// meanwhile.
class KernelTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Starts one with the default options at the first call.
  WardenClient& client();
  // Ends the present one and starts one with these options.
  WardenClient& restart(const warden::WardenOptions& options);
  // Options whose names the audit knows.
  warden::WardenOptions new_options();

 private:
  std::unique_ptr<WardenClient> client_;
  std::vector<std::string> instances_;
  std::multiset<std::string> mounts_;
  std::size_t descriptors_ = 0;
};

}  // namespace hutch::kernel_test
