// Both versions against plain files: what is written where, what each failure says, that a failed
// construction leaves nothing.
#include "isolation/cgroup.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "base/sys.h"

namespace hutch::isolation {
namespace {

namespace fs = std::filesystem;

// A directory that a test makes and takes away.
class Scratch {
 public:
  Scratch() {
    std::string pattern = testing::TempDir() + "/cgroups-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~Scratch() { fs::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Plain files that behave like control groups as far as our code can tell.
class PlainFiles final : public CgroupKernel {
 public:
  // Made in each new directory, as the kernel would.
  std::map<std::string, std::string> files;
  // Writes to a path that ends so fail with this errno.
  std::map<std::string, int> failures;
  std::vector<std::string> writes;  // "name of the last two parts = text"
  std::vector<pid_t> killed;

  Status make_directory(const std::string& path) override {
    if (const int error = failing(path)) return failed(error, "cannot make the group " + path);
    TRY(CgroupKernel::make_directory(path));
    for (const auto& [name, text] : files) put(path + "/" + name, text);
    return {};
  }

  Status remove_directory(const std::string& path) override {
    if (!fs::exists(path)) return {};
    const std::string procs = read(path + "/cgroup.procs").value_or("");
    for (const auto& entry : fs::directory_iterator(path)) {
      if (entry.is_directory()) return failed(EBUSY, "busy", ErrorCode::busy);
    }
    if (!procs.empty()) return failed(EBUSY, "busy", ErrorCode::busy);
    fs::remove_all(path);
    return {};
  }

  Status write(const std::string& path, std::string_view text) override {
    if (const int error = failing(path)) return failed(error, "cannot write " + path);
    if (!fs::exists(path)) return failed(ENOENT, "cannot open " + path, ErrorCode::not_found);
    const fs::path where(path);
    writes.push_back(where.parent_path().filename().string() + "/" + where.filename().string() +
                     " = " + std::string(text));
    put(path, text);
    return {};
  }

  Status kill_member(const std::string& procs_path, pid_t pid) override {
    killed.push_back(pid);
    std::string rest;
    for (const pid_t member : parse_members(read(procs_path).value_or(""))) {
      if (member != pid) rest += std::to_string(member) + "\n";
    }
    put(procs_path, rest);
    return {};
  }

  static void put(const std::string& path, std::string_view text) { std::ofstream(path) << text; }

 private:
  int failing(const std::string& path) const {
    for (const auto& [end, error] : failures) {
      if (path.ends_with(end)) return error;
    }
    return 0;
  }

  static Status failed(int error, std::string message, ErrorCode code = ErrorCode::io) {
    return fail(Error{code, Step::none, error, std::move(message)});
  }
};

TEST(CgroupFiles, ReadAsNumbers) {
  EXPECT_EQ(parse_counter("oom 3\noom_kill 2\n", "oom_kill"), 2U);
  EXPECT_EQ(parse_counter("oom 3\noom_kill 2\n", "kill"), 0U);
  EXPECT_EQ(parse_counter("SwapFree:  1 kB\nSwapTotal:       2048 kB\n", "SwapTotal:"), 2048U);
  EXPECT_EQ(parse_counter("", "max"), 0U);
  EXPECT_EQ(parse_members("12\n0\n\nx\n13"), (std::vector<pid_t>{12, 13}));
}

constexpr CgroupLimits kLimits{.memory_bytes = 64U << 20U, .processes = 17, .cpu_quota_us = 50'000};

class CgroupV2Files : public testing::Test {
 protected:
  CgroupV2Files() {
    kernel_.files = {{"cgroup.procs", ""},
                     {"cgroup.subtree_control", ""},
                     {"cgroup.events", "populated 0\nfrozen 0\n"},
                     {"cgroup.kill", ""},
                     {"memory.max", "max\n"},
                     {"memory.swap.max", "max"},
                     {"memory.oom.group", "0\n"},
                     {"memory.events", "low 0\noom 0\noom_kill 0\noom_group_kill 0\n"},
                     {"memory.peak", "0\n"},
                     {"pids.max", "max\n"},
                     {"pids.events", "max 0\n"},
                     {"cpu.max", "max 100000\n"},
                     {"cpu.stat", "usage_usec 0\nuser_usec 0\n"}};
    layout_.version = CgroupVersion::v2;
    layout_.v2 = scratch_.path() + "/own";
    layout_.v2_controllers = {"cpuset", "cpu", "io", "memory", "pids"};
    EXPECT_TRUE(kernel_.make_directory(layout_.v2));
    options_.instance = "t1";
  }

  std::unique_ptr<CgroupTree> open() {
    auto tree = open_cgroup_tree(kernel_, layout_, options_);
    return tree ? std::move(*tree) : nullptr;
  }

  std::string root() const { return layout_.v2 + "/hutch-t1"; }

  Scratch scratch_;
  PlainFiles kernel_;
  CgroupLayout layout_;
  CgroupTreeOptions options_;
};

TEST_F(CgroupV2Files, WritesEveryLimit) {
  const auto tree = open();
  ASSERT_TRUE(tree->unenforced().empty());
  const auto group = tree->create("s1", kLimits);
  ASSERT_TRUE(group) << describe(group.error());
  EXPECT_EQ(kernel_.writes, (std::vector<std::string>{
                                "own/cgroup.subtree_control = +memory +pids +cpu",
                                "hutch-t1/cgroup.subtree_control = +memory +pids +cpu",
                                "s1/memory.max = 67108864",
                                "s1/memory.swap.max = 0",
                                "s1/memory.oom.group = 1",
                                "s1/pids.max = 17",
                                "s1/cpu.max = 50000 100000",
                            }));
  ASSERT_TRUE((*group)->raise_memory(67108865));
  EXPECT_EQ(kernel_.writes.back(), "s1/memory.max = 67108865");
}

TEST_F(CgroupV2Files, AttachesCountsKillsAndRemoves) {
  const auto tree = open();
  auto group = std::move(tree->create("s1", kLimits)).value();
  const std::string directory = root() + "/s1";
  ASSERT_TRUE(group->attach(4242));
  EXPECT_EQ(kernel_.read(directory + "/cgroup.procs").value(), "4242");
  PlainFiles::put(directory + "/memory.events", "oom 3\noom_kill 2\noom_group_kill 1\n");
  PlainFiles::put(directory + "/pids.events", "max 5\n");
  PlainFiles::put(directory + "/memory.peak", "123456\n");
  PlainFiles::put(directory + "/cpu.stat", "usage_usec 777\nuser_usec 1\n");
  const CgroupCounters counters = group->counters();
  EXPECT_EQ(counters.memory_kills, 2U);
  EXPECT_EQ(counters.processes_denied, 5U);
  EXPECT_EQ(counters.memory_peak_bytes, 123456U);
  EXPECT_EQ(counters.cpu_us, 777U);

  PlainFiles::put(directory + "/cgroup.events", "populated 1\nfrozen 0\n");
  EXPECT_TRUE(group->populated().value());
  const auto busy = group->remove();
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code, ErrorCode::busy);
  EXPECT_EQ(busy.error().step, Step::cgroup_remove);

  ASSERT_TRUE(group->kill_all());
  EXPECT_EQ(kernel_.writes.back(), "s1/cgroup.kill = 1");
  EXPECT_TRUE(kernel_.killed.empty());

  PlainFiles::put(directory + "/cgroup.procs", "");
  EXPECT_TRUE(group->remove());
  EXPECT_TRUE(group->remove());
  EXPECT_FALSE(group->populated().value());
  EXPECT_FALSE(fs::exists(directory));
}

TEST_F(CgroupV2Files, KillsOneByOneWithoutCgroupKill) {
  kernel_.files.erase("cgroup.kill");
  kernel_.files["cgroup.freeze"] = "0\n";
  const auto tree = open();
  auto group = std::move(tree->create("s1", kLimits)).value();
  PlainFiles::put(root() + "/s1/cgroup.procs", "11\n0\n12\n");
  ASSERT_TRUE(group->kill_all());
  EXPECT_EQ(kernel_.killed, (std::vector<pid_t>{11, 12}));
  EXPECT_EQ(kernel_.writes.back(), "s1/cgroup.freeze = 0");
  PlainFiles::put(root() + "/s1/cgroup.procs", "");
}

TEST_F(CgroupV2Files, TellsOfMemoryKills) {
  const auto tree = open();
  auto group = std::move(tree->create("s1", kLimits)).value();
  const auto watch = group->watch_memory_kills();
  ASSERT_TRUE(watch) << describe(watch.error());
  pollfd waiting{watch->get(), POLLIN, 0};
  EXPECT_EQ(::poll(&waiting, 1, 0), 0);
  PlainFiles::put(root() + "/s1/memory.events", "oom_kill 1\n");
  EXPECT_EQ(::poll(&waiting, 1, 5000), 1);
}

TEST_F(CgroupV2Files, EachFailureNamesItsStepAndLeavesNothing) {
  const auto tree = open();
  const std::map<std::string, std::string> steps{{"s1", "cgroup_create"},
                                                 {"memory.max", "cgroup_limits"},
                                                 {"memory.swap.max", "cgroup_limits"},
                                                 {"memory.oom.group", "cgroup_limits"},
                                                 {"pids.max", "cgroup_limits"},
                                                 {"cpu.max", "cgroup_limits"}};
  for (const auto& [where, step] : steps) {
    kernel_.failures = {{"/" + where, EIO}};
    const auto group = tree->create("s1", kLimits);
    ASSERT_FALSE(group) << where;
    EXPECT_EQ(step_name(group.error().step), step) << where;
    EXPECT_EQ(group.error().sys_errno, EIO);
    EXPECT_NE(group.error().message.find(where), std::string::npos) << group.error().message;
    EXPECT_FALSE(fs::exists(root() + "/s1")) << where;
  }
}

TEST_F(CgroupV2Files, NamesWhatTheHostCannotHold) {
  layout_.v2_controllers = {"memory"};
  const auto tree = open();
  ASSERT_EQ(tree->unenforced().size(), 2U);
  EXPECT_EQ(tree->unenforced()[0].name, "processes");
  EXPECT_EQ(tree->unenforced()[1].name, "cpus");
  const auto group = tree->create("s1", kLimits);
  ASSERT_FALSE(group);
  EXPECT_EQ(group.error().code, ErrorCode::unsupported_host);
  EXPECT_NE(group.error().message.find("processes"), std::string::npos);
  EXPECT_NE(group.error().message.find("cpus"), std::string::npos);
}

TEST_F(CgroupV2Files, MakesGroupsWithoutWhatIsWaivedAndHoldsTheRest) {
  layout_.v2_controllers = {"memory"};
  kernel_.files.erase("pids.max");
  kernel_.files.erase("cpu.max");
  options_.waived = {"cpus"};
  EXPECT_FALSE(open()->create("s1", kLimits)) << "processes were not waived";
  options_.waived = {"cpus", "processes", "memory"};
  const auto tree = open();
  EXPECT_TRUE(tree->refused().empty());
  EXPECT_FALSE(holds(*tree, "cpus"));
  EXPECT_TRUE(holds(*tree, "memory"));
  const auto group = tree->create("s1", kLimits);
  ASSERT_TRUE(group) << describe(group.error());
  EXPECT_EQ(kernel_.read(root() + "/s1/memory.max").value(), std::to_string(kLimits.memory_bytes));
  EXPECT_FALSE(fs::exists(root() + "/s1/pids.max"));
}

TEST_F(CgroupV2Files, FailsWhenWhatItHeldIsTakenAway) {
  const auto tree = open();
  ASSERT_TRUE(tree->unenforced().empty());
  kernel_.files.erase("memory.max");
  EXPECT_FALSE(tree->create("s1", kLimits)) << "the limit of memory was not set";
  fs::remove_all(root());
  EXPECT_FALSE(tree->create("s2", kLimits)) << "there is no tree any more";
}

TEST_F(CgroupV2Files, MakesNoGroupWhereItMayMakeNone) {
  kernel_.failures = {{"own/cgroup.subtree_control", EACCES}, {"/hutch-t1", EACCES}};
  options_.waived = {"memory", "processes", "cpus"};
  const auto tree = open();
  ASSERT_EQ(tree->unenforced().size(), 3U);
  const auto group = tree->create("s1", kLimits);
  ASSERT_TRUE(group) << describe(group.error());
  EXPECT_TRUE((*group)->attach(77));
  EXPECT_TRUE((*group)->raise_memory(1));
  EXPECT_TRUE((*group)->kill_all());
  EXPECT_FALSE((*group)->populated().value());
  EXPECT_EQ((*group)->counters().memory_peak_bytes, 0U);
  pollfd never{(*group)->watch_memory_kills().value().release(), POLLIN, 0};
  EXPECT_EQ(::poll(&never, 1, 0), 0);
  ::close(never.fd);
  EXPECT_TRUE((*group)->remove());
  EXPECT_FALSE(fs::exists(root() + "/s1"));
}

TEST_F(CgroupV2Files, SwapThatIsNotCountedMakesMemoryUnenforced) {
  kernel_.files.erase("memory.swap.max");
  EXPECT_TRUE(open()->unenforced().empty());
  options_.swap_bytes = 1;
  const auto tree = open();
  ASSERT_EQ(tree->unenforced().size(), 1U);
  EXPECT_EQ(tree->unenforced()[0].name, "memory");
}

TEST_F(CgroupV2Files, MovesOurProcessesAsideWhenOurGroupHoldsThem) {
  options_.own_processes = {77};
  kernel_.failures = {{"own/cgroup.subtree_control", EBUSY}};
  const auto tree = open();
  EXPECT_EQ(kernel_.read(root() + "-server/cgroup.procs").value(), "77");
  // Somebody else's processes are still there: all three limits, and the way out.
  ASSERT_EQ(tree->unenforced().size(), 3U);
  EXPECT_NE(tree->unenforced()[0].reason.find("Delegate=yes"), std::string::npos);
}

TEST_F(CgroupV2Files, SweepsWhatAnEarlierServerLeft) {
  {
    const auto earlier = open();
    ASSERT_TRUE(earlier->create("s1", kLimits));  // its owner ends here, the group goes with it
  }
  const auto tree = open();
  for (const char* name : {"s1", "s2", "other"}) {
    ASSERT_TRUE(kernel_.make_directory(root() + "/" + std::string(name)));
  }
  PlainFiles::put(root() + "/s2/cgroup.procs", "9\n");
  EXPECT_EQ(tree->sweep("s").value(), 1U);  // s2 is still dying
  EXPECT_TRUE(fs::exists(root() + "/other"));
  PlainFiles::put(root() + "/s2/cgroup.procs", "");
  EXPECT_EQ(tree->sweep("").value(), 0U);
  EXPECT_TRUE(tree->remove());
  EXPECT_FALSE(fs::exists(root()));
}

TEST_F(CgroupV2Files, RefusesNamesAndLimitsThatMakeNoSense) {
  const auto tree = open();
  for (const char* name : {"", "..", "a/b", "A", "a b"}) EXPECT_FALSE(tree->create(name, kLimits));
  EXPECT_FALSE(tree->create("s1", CgroupLimits{}));
  options_.instance = "../x";
  EXPECT_FALSE(open_cgroup_tree(kernel_, layout_, options_));
}

class CgroupV1Files : public testing::Test {
 protected:
  CgroupV1Files() {
    kernel_.files = {{"cgroup.procs", ""},
                     {"cgroup.event_control", ""},
                     {"memory.limit_in_bytes", "9\n"},
                     {"memory.memsw.limit_in_bytes", "9\n"},
                     {"memory.kmem.tcp.limit_in_bytes", "9\n"},
                     {"memory.oom_control", "oom_kill_disable 1\nunder_oom 0\noom_kill 4\n"},
                     {"memory.max_usage_in_bytes", "555\n"},
                     {"pids.max", "max\n"},
                     {"pids.events", "max 6\n"},
                     {"cpu.cfs_period_us", "100000\n"},
                     {"cpu.cfs_quota_us", "-1\n"},
                     {"cpuacct.usage", "7000000\n"},
                     {"freezer.state", "THAWED\n"}};
    layout_.version = CgroupVersion::v1;
    for (const char* name : {"memory", "pids", "freezer"}) {
      layout_.v1[name] = scratch_.path() + "/" + name;
    }
    layout_.v1["cpu"] = layout_.v1["cpuacct"] = scratch_.path() + "/cpu,cpuacct";
    for (const auto& [name, directory] : layout_.v1) {
      EXPECT_TRUE(kernel_.make_directory(directory));
    }
    options_.instance = "t1";
  }

  std::unique_ptr<CgroupTree> open() {
    return std::move(open_cgroup_tree(kernel_, layout_, options_)).value();
  }

  std::size_t groups_left() const {
    std::size_t left = 0;
    for (const auto& entry : fs::recursive_directory_iterator(scratch_.path())) {
      left += entry.is_directory() && entry.path().filename() == "s1" ? 1 : 0;
    }
    return left;
  }

  Scratch scratch_;
  PlainFiles kernel_;
  CgroupLayout layout_;
  CgroupTreeOptions options_;
};

TEST_F(CgroupV1Files, WritesEveryLimitInOrder) {
  const auto tree = open();
  ASSERT_TRUE(tree->unenforced().empty());
  auto group = std::move(tree->create("s1", kLimits)).value();
  EXPECT_EQ(kernel_.writes, (std::vector<std::string>{
                                "s1/memory.limit_in_bytes = 67108864",
                                "s1/memory.memsw.limit_in_bytes = 67108864",
                                "s1/memory.kmem.tcp.limit_in_bytes = 8388608",
                                "s1/memory.oom_control = 0",
                                "s1/pids.max = 17",
                                "s1/cpu.cfs_period_us = 100000",
                                "s1/cpu.cfs_quota_us = 50000",
                            }));
  kernel_.writes.clear();
  ASSERT_TRUE(group->raise_memory(67108865));
  EXPECT_EQ(kernel_.writes, (std::vector<std::string>{"s1/memory.memsw.limit_in_bytes = 67108865",
                                                      "s1/memory.limit_in_bytes = 67108865"}));
  kernel_.writes.clear();
  PlainFiles::put(scratch_.path() + "/memory/hutch-t1/s1/memory.oom_control", "oom_kill 4\n");
  const CgroupCounters counters = group->counters();
  EXPECT_EQ(counters.memory_kills, 4U);
  EXPECT_EQ(counters.processes_denied, 6U);
  EXPECT_EQ(counters.memory_peak_bytes, 555U);
  EXPECT_EQ(counters.cpu_us, 7000U);
  ASSERT_TRUE(group->attach(4242));
  EXPECT_EQ(kernel_.writes.size(), 4U);  // cpu and cpuacct are one directory
  EXPECT_TRUE(group->populated().value());
}

TEST_F(CgroupV1Files, ThawsWhateverHappened) {
  const auto tree = open();
  auto group = std::move(tree->create("s1", kLimits)).value();
  ASSERT_TRUE(group->attach(21));
  kernel_.writes.clear();
  ASSERT_TRUE(group->kill_all());
  EXPECT_EQ(kernel_.writes,
            (std::vector<std::string>{"s1/freezer.state = FROZEN", "s1/freezer.state = THAWED"}));
  EXPECT_FALSE(kernel_.killed.empty());

  // Freezing that fails does not keep anybody alive.
  ASSERT_TRUE(group->attach(22));
  kernel_.killed.clear();
  kernel_.failures = {{"/freezer.state", EIO}};
  const auto killed = group->kill_all();
  EXPECT_FALSE(kernel_.killed.empty());
  // A group that may still be frozen is an error that the caller must hear of.
  ASSERT_FALSE(killed);
  EXPECT_EQ(killed.error().step, Step::kill_tree);
}

TEST_F(CgroupV1Files, EachFailureNamesItsStepAndLeavesNothing) {
  const auto tree = open();
  for (const char* where :
       {"memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.kmem.tcp.limit_in_bytes",
        "memory.oom_control", "pids.max", "cpu.cfs_period_us", "cpu.cfs_quota_us"}) {
    kernel_.failures = {{std::string("/") + where, EINVAL}};
    const auto group = tree->create("s1", kLimits);
    ASSERT_FALSE(group) << where;
    EXPECT_EQ(group.error().step, Step::cgroup_limits);
    EXPECT_NE(group.error().message.find(where), std::string::npos) << group.error().message;
    EXPECT_EQ(groups_left(), 0U) << where;
  }
  kernel_.failures = {{"/pids/hutch-t1/s1", EROFS}};
  const auto group = tree->create("s1", kLimits);
  ASSERT_FALSE(group);
  EXPECT_EQ(group.error().step, Step::cgroup_create);
  EXPECT_EQ(groups_left(), 0U);
}

TEST_F(CgroupV1Files, NamesWhatTheHostCannotHold) {
  layout_.v1.erase("pids");
  kernel_.files.erase("cpu.cfs_quota_us");
  kernel_.files.erase("memory.memsw.limit_in_bytes");
  options_.swap_bytes = 1;
  const auto tree = open();
  ASSERT_EQ(tree->unenforced().size(), 3U);
  EXPECT_EQ(tree->unenforced()[0].name, "processes");
  EXPECT_EQ(tree->unenforced()[1].name, "cpus");
  EXPECT_EQ(tree->unenforced()[1].reason, "the kernel has no cpu.cfs_quota_us");
  EXPECT_EQ(tree->unenforced()[2].name, "memory");

  kernel_.failures = {{"/memory/hutch-t1", EACCES}};
  const auto refused = open();
  EXPECT_NE(refused->unenforced()[0].reason.find("Permission denied"), std::string::npos)
      << refused->unenforced()[0].reason;
}

TEST_F(CgroupV1Files, MakesGroupsWithoutWhatIsWaivedAndHoldsTheRest) {
  layout_.v1.erase("memory");
  kernel_.files.erase("cpu.cfs_quota_us");
  options_.waived = {"memory"};
  EXPECT_FALSE(open()->create("s1", kLimits)) << "cpus were not waived";
  options_.waived = {"memory", "cpus"};
  const auto tree = open();
  EXPECT_TRUE(holds(*tree, "processes"));
  EXPECT_FALSE(holds(*tree, "memory"));
  const auto group = tree->create("s1", kLimits);
  ASSERT_TRUE(group) << describe(group.error());
  EXPECT_TRUE((*group)->raise_memory(1 << 30));
  EXPECT_TRUE((*group)->watch_memory_kills());
  EXPECT_EQ(kernel_.read(scratch_.path() + "/pids/hutch-t1/s1/pids.max").value(),
            std::to_string(kLimits.processes));
}

TEST_F(CgroupV1Files, MakesNoGroupWhereItMayMakeNone) {
  options_.waived = {"memory", "processes", "cpus"};
  kernel_.failures = {{"/hutch-t1", EACCES}};
  const auto tree = open();
  const auto group = tree->create("s1", kLimits);
  ASSERT_TRUE(group) << describe(group.error());
  EXPECT_TRUE((*group)->attach(77));
  EXPECT_TRUE((*group)->kill_all());
  EXPECT_TRUE((*group)->watch_memory_kills());
  EXPECT_TRUE((*group)->remove());
}

TEST_F(CgroupV1Files, SweepsAllHierarchies) {
  const auto tree = open();
  // Only some of the directories of a group whose making was cut short.
  ASSERT_TRUE(kernel_.make_directory(scratch_.path() + "/memory/hutch-t1/s1"));
  ASSERT_TRUE(kernel_.make_directory(scratch_.path() + "/freezer/hutch-t1/s2"));
  PlainFiles::put(scratch_.path() + "/freezer/hutch-t1/s2/cgroup.procs", "31\n");
  EXPECT_EQ(tree->sweep("").value(), 0U);
  EXPECT_EQ(kernel_.killed, std::vector<pid_t>{31});
  EXPECT_TRUE(tree->remove());
}

TEST(NoCgroups, HoldNothing) {
  PlainFiles kernel;
  const auto tree = open_cgroup_tree(kernel, CgroupLayout{}, {.instance = "t1"}).value().release();
  const std::unique_ptr<CgroupTree> owner(tree);
  EXPECT_EQ(owner->unenforced().size(), 3U);
  EXPECT_FALSE(owner->create("s1", kLimits));
  const auto waived =
      open_cgroup_tree(kernel, CgroupLayout{},
                       {.instance = "t1", .waived = {"memory", "processes", "cpus"}})
          .value();
  EXPECT_TRUE(waived->create("s1", kLimits));
}

}  // namespace
}  // namespace hutch::isolation
