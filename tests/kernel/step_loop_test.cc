// Each step of a start and of a sandbox's making is made to fail in turn: the error names the step,
// and nothing is left of the attempt. Only in builds that have failpoints.
#ifdef HUTCH_TESTING

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/sys.h"
#include "warden_client.h"

namespace hutch::kernel_test {
namespace {

using warden::Ask;
using warden::Tell;
using namespace std::chrono_literals;

// Steps that no list has on this host, or that other processes than the warden's take.
bool is_taken(Step step) {
  switch (step) {
    case Step::init_report:  // only a name for an init that dies without a word
    case Step::home_links:   // the client's options have none
      return false;
    default: return true;
  }
}

class StepLoop : public KernelTest, public testing::WithParamInterface<int> {};

std::string name_of(const testing::TestParamInfo<int>& info) {
  return std::string(step_name(static_cast<Step>(info.param)));
}

class SandboxStep : public StepLoop {};

TEST_P(SandboxStep, IsNamedAndLeavesNothing) {
  const auto step = static_cast<Step>(GetParam());
  warden::WardenOptions options = new_options();
  options.fail_step = step;
  restart(options);
  client().ask(Ask::create, 1);
  const Told told = client().next();
  if (!is_taken(step)) {
    EXPECT_EQ(told.report.tell, Tell::created);
    return;
  }
  EXPECT_EQ(told.report.tell, Tell::failed);
  EXPECT_EQ(told.report.step, step) << step_name(told.report.step);
  EXPECT_EQ(told.report.sys_errno, EIO);
  EXPECT_EQ(client().close(), 0);
}

INSTANTIATE_TEST_SUITE_P(All, SandboxStep,
                         testing::Range(static_cast<int>(Step::channel_create),
                                        static_cast<int>(Step::program_ready)),
                         name_of);

std::size_t children_of(pid_t pid) {
  const std::string path =
      "/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children";
  const std::string text = sys::read_file(path, 65536).value_or("");
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), ' '));
}

class LauncherStep : public KernelTest {};

// A program that was cloned while the server closed: its launcher ends without having told of it,
// its init cannot finish dying before it is reaped, and nobody but the warden can reap it.
TEST_F(LauncherStep, AnswerThatNeverComesHoldsNothingUp) {
  warden::WardenOptions options = new_options();
  options.fail_step = Step::launcher_answer;
  restart(options);
  client().ask(Ask::create, 1);
  constexpr std::size_t kAnchorLauncherInitProgram = 4;
  const auto deadline = std::chrono::steady_clock::now() + 10s * slack();
  while (children_of(client().pid()) < kAnchorLauncherInitProgram) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "the program is not cloned";
    ::poll(nullptr, 0, 1);
  }
  EXPECT_EQ(client().close(), 0);
}

class StartStep : public StepLoop {};

TEST_P(StartStep, IsNamedAndLeavesNothing) {
  const auto step = static_cast<Step>(GetParam());
  warden::WardenOptions options = new_options();
  options.fail_step = step;
  const auto started = warden::start_warden(options);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().step, step) << describe(started.error());
  EXPECT_EQ(started.error().sys_errno, EIO);
  ::rmdir(options.state_dir.c_str());
}

INSTANTIATE_TEST_SUITE_P(
    All, StartStep,
    testing::Values(static_cast<int>(Step::uid_range), static_cast<int>(Step::cgroup_root),
                    static_cast<int>(Step::image_mount), static_cast<int>(Step::zone_devices),
                    static_cast<int>(Step::zone_clone), static_cast<int>(Step::zone_maps),
                    static_cast<int>(Step::zone_root), static_cast<int>(Step::zone_proc),
                    static_cast<int>(Step::zone_pivot), static_cast<int>(Step::launcher_start),
                    static_cast<int>(Step::launcher_plan)),
    name_of);

}  // namespace
}  // namespace hutch::kernel_test

#endif  // HUTCH_TESTING
