// Version 1 in the real kernel. Skipped without root or without v1; leaves nothing behind.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>

#include "base/sys.h"
#include "base/units.h"
#include "isolation/cgroup.h"

namespace hutch::isolation {
namespace {

namespace fs = std::filesystem;
using Deadline = std::chrono::steady_clock::time_point;

// A child that waits until it is told to start, so that it can be put into a group before.
class Child {
 public:
  template <class Body>
  explicit Child(Body body) {
    auto ends = sys::pipe();
    pid_ = ::fork();
    if (pid_ == 0) {
      char go = 0;
      ends->write.reset();
      if (::read(ends->read.get(), &go, 1) != 1) ::_exit(1);
      body();
      ::_exit(0);
    }
    start_ = std::move(ends->write);
  }
  ~Child() {
    if (reaped_) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  pid_t pid() const { return pid_; }
  void start() { EXPECT_TRUE(sys::write_all(start_.get(), "g")); }
  int reap() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    reaped_ = true;
    return status;
  }

 private:
  pid_t pid_ = -1;
  bool reaped_ = false;
  Fd start_;
};

class CgroupV1InKernel : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    const auto layout = detect_cgroups(kernel_, "");
    ASSERT_TRUE(layout) << describe(layout.error());
    if (layout->version != CgroupVersion::v1) GTEST_SKIP() << "needs control groups version 1";
    options_.instance = "test-" + std::to_string(::getpid());
    tree_ = std::move(open_cgroup_tree(kernel_, *layout, options_)).value();
    if (!tree_->unenforced().empty()) {
      GTEST_SKIP() << "cannot hold " << tree_->unenforced()[0].name << ": "
                   << tree_->unenforced()[0].reason;
    }
    directories_ = tree_->directories();
  }

  void TearDown() override {
    if (!tree_) return;
    EXPECT_TRUE(tree_->remove());
    tree_.reset();
    for (const std::string& directory : directories_) EXPECT_FALSE(fs::exists(directory));
  }

  // Removal succeeds some moments after the last member is dead.
  static void remove_soon(Cgroup& group) {
    const Deadline deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    auto removed = group.remove();
    while (!removed && removed.error().code == ErrorCode::busy &&
           std::chrono::steady_clock::now() < deadline) {
      ::poll(nullptr, 0, 1);
      removed = group.remove();
    }
    EXPECT_TRUE(removed) << describe(removed.error());
  }

  std::string value(std::string_view controller, const std::string& file) const {
    for (const std::string& directory : directories_) {
      if (directory.find("/" + std::string(controller)) == std::string::npos) continue;
      const auto text = sys::read_file(directory + "/s1/" + file, 4096);
      if (text) return text->substr(0, text->find('\n'));
    }
    return "absent";
  }

  static constexpr CgroupLimits kLimits{
      .memory_bytes = 32_MiB, .processes = 4, .cpu_quota_us = 50'000};

  CgroupKernel kernel_;
  CgroupTreeOptions options_;
  std::unique_ptr<CgroupTree> tree_;
  std::vector<std::string> directories_;
};

TEST_F(CgroupV1InKernel, LimitsReadBackAsWritten) {
  auto group = std::move(tree_->create("s1", kLimits)).value();
  EXPECT_EQ(value("memory", "memory.limit_in_bytes"), "33554432");
  EXPECT_EQ(value("pids", "pids.max"), "4");
  EXPECT_EQ(value("cpu", "cpu.cfs_quota_us"), "50000");
  EXPECT_EQ(value("cpu", "cpu.cfs_period_us"), "100000");
  EXPECT_FALSE(group->populated().value());
  EXPECT_TRUE(group->remove());
}

TEST_F(CgroupV1InKernel, MemoryKillIsToldAndCounted) {
  auto group = std::move(tree_->create("s1", kLimits)).value();
  const auto watch = group->watch_memory_kills();
  ASSERT_TRUE(watch) << describe(watch.error());
  Child child([] {
    constexpr std::size_t kBytes = 64_MiB;
    void* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    auto* bytes = static_cast<volatile char*>(memory);
    for (std::size_t at = 0; at < kBytes; at += 4096) bytes[at] = 1;
  });
  ASSERT_TRUE(group->attach(child.pid()));
  EXPECT_TRUE(group->populated().value());
  child.start();
  const int status = child.reap();
  EXPECT_TRUE(WIFSIGNALED(status));
  pollfd waiting{watch->get(), POLLIN, 0};
  EXPECT_EQ(::poll(&waiting, 1, 5000), 1);
  const CgroupCounters counters = group->counters();
  EXPECT_EQ(counters.memory_kills, 1U);
  EXPECT_GT(counters.memory_peak_bytes, 30_MiB);
  EXPECT_LE(counters.memory_peak_bytes, 32_MiB);
  EXPECT_GT(counters.cpu_us, 0U);
  remove_soon(*group);
}

TEST_F(CgroupV1InKernel, ProcessLimitIsHeldAndCounted) {
  auto group = std::move(tree_->create("s1", kLimits)).value();
  Child child([] {
    int refused = 0;
    for (int i = 0; i < 6; ++i) {
      const pid_t inner = ::fork();
      if (inner == 0) ::_exit(::pause());
      if (inner < 0) ++refused;
    }
    ::_exit(refused);
  });
  ASSERT_TRUE(group->attach(child.pid()));
  child.start();
  const int status = child.reap();
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 3);
  EXPECT_EQ(group->counters().processes_denied, 3U);
  EXPECT_TRUE(group->populated().value());
  const auto busy = group->remove();
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code, ErrorCode::busy);
  EXPECT_TRUE(group->kill_all());
  remove_soon(*group);
}

TEST_F(CgroupV1InKernel, KillAllReachesAForkBomb) {
  auto group = std::move(tree_->create("s1", kLimits)).value();
  Child child([] {
    for (;;) {
      if (::fork() == 0) ::setsid();
    }
  });
  ASSERT_TRUE(group->attach(child.pid()));
  child.start();
  const Deadline deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (group->counters().processes_denied == 0 && std::chrono::steady_clock::now() < deadline) {
    ::poll(nullptr, 0, 1);
  }
  EXPECT_TRUE(group->kill_all());
  EXPECT_TRUE(WIFSIGNALED(child.reap()));
  remove_soon(*group);
}

TEST_F(CgroupV1InKernel, SweepEndsWhatAnEarlierServerLeft) {
  auto group = std::move(tree_->create("s1", kLimits)).value();
  Child child([] { ::pause(); });
  ASSERT_TRUE(group->attach(child.pid()));
  child.start();
  group.reset();  // the owner is gone, the group is not: somebody lives in it
  std::size_t left = tree_->sweep("").value();
  EXPECT_TRUE(WIFSIGNALED(child.reap()));
  const Deadline deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (left > 0 && std::chrono::steady_clock::now() < deadline) {
    ::poll(nullptr, 0, 1);
    left = tree_->sweep("").value();
  }
  EXPECT_EQ(left, 0U);
}

}  // namespace
}  // namespace hutch::isolation
