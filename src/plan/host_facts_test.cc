// Readers, held against hosts that are directories.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "plan/host_fixture.h"
#include "plan/host_read.h"

namespace hutch::plan {
namespace {

namespace fs = std::filesystem;
using enum FindingVerdict;

// A made-up host: a directory with the files that are read.
class MadeUpHost : public testing::Test {
 protected:
  MadeUpHost() {
    std::string pattern = testing::TempDir() + "/host-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    put("/proc/sys/kernel/osrelease", "5.15.0-91-generic\n");
    put("/proc/self/status",
        "Name:\thutch\nUid:\t0\t0\t0\t0\nCapEff:\t00000000a80425fb\n"
        "Cpus_allowed_list:\t0-1,4\n");
    put("/proc/self/ns/user", "");
    put("/proc/sys/user/max_user_namespaces", "31000\n");
    put("/proc/sys/kernel/unprivileged_userns_clone", "0\n");
    put("/proc/sys/kernel/seccomp/actions_avail", "kill_process trap errno allow\n");
    put("/proc/sys/vm/overcommit_memory", "1\n");
    put("/proc/sys/kernel/pid_max", "32768\n");
    put("/proc/filesystems", "nodev\tproc\n\text4\n");
    put("/proc/meminfo",
        "MemTotal:        8000000 kB\nMemAvailable:    4000000 kB\nSwapTotal:       1024 kB\n");
    put("/proc/self/cgroup", "0::/\n");
    put("/proc/self/mountinfo",
        "22 27 0:21 / /proc rw - proc proc rw\n"
        "23 22 0:21 /sys /proc/sys ro - proc proc rw\n"
        "24 22 0:50 / /proc/sys/fs/binfmt_misc rw - binfmt_misc binfmt_misc rw\n"
        "30 27 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    put("/sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
  }
  ~MadeUpHost() override { fs::remove_all(root_); }

  void put(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  std::string root_;
};

TEST_F(MadeUpHost, IsReadAsItIs) {
  const HostFacts facts = gather_host_facts(root_);
  EXPECT_EQ(facts.kernel_release, "5.15.0-91-generic");
  EXPECT_EQ(facts.kernel_major, 5U);
  EXPECT_EQ(facts.kernel_minor, 15U);
  EXPECT_TRUE(facts.user.is_root);
  EXPECT_EQ(facts.user.capabilities, 0xa80425fbU);
  EXPECT_EQ(facts.cpus, (std::vector<std::uint32_t>{0, 1, 4}));
  EXPECT_TRUE(facts.user_namespaces);
  EXPECT_EQ(facts.namespaces_max.at("user"), 31000U);
  EXPECT_FALSE(facts.user_namespaces_for_all);
  EXPECT_FALSE(facts.user_namespaces_by_apparmor);
  EXPECT_TRUE(facts.seccomp);
  EXPECT_FALSE(facts.erofs);
  EXPECT_EQ(facts.overcommit, 1U);
  EXPECT_EQ(facts.pid_max, 32768U);
  EXPECT_EQ(facts.memory_bytes, 8000000_KiB);
  EXPECT_EQ(facts.swap_bytes, 1024_KiB);
  EXPECT_EQ(facts.proc_masks, std::vector<std::string>{"/proc/sys"});
  EXPECT_EQ(facts.cgroups.version, isolation::CgroupVersion::v2);
  ASSERT_EQ(facts.unenforced.size(), 1U);
  EXPECT_EQ(facts.unenforced[0].name, "processes");
}

TEST_F(MadeUpHost, MemoryIsBoundedByItsOwnGroup) {
  put("/sys/fs/cgroup/memory.max", "1073741824\n");
  put("/sys/fs/cgroup/memory.current", "800000000\n");
  put("/sys/fs/cgroup/memory.stat", "anon 1\ninactive_file 300000000\n");
  const HostFacts facts = gather_host_facts(root_);
  EXPECT_EQ(facts.memory_bytes, 1_GiB);
  EXPECT_EQ(facts.memory_available_bytes, 1_GiB - 500000000);
  put("/sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(gather_host_facts(root_).memory_bytes, 8000000_KiB);
}

TEST_F(MadeUpHost, ErofsMayBeAModule) {
  put("/lib/modules/5.15.0-91-generic/modules.dep", "kernel/fs/erofs/erofs.ko.xz: kernel/lib\n");
  EXPECT_TRUE(gather_host_facts(root_).erofs);
}

TEST(GatherHostFacts, ReadsThisMachineAndSurvivesAnEmptyOne) {
  const HostFacts here = gather_host_facts("");
  EXPECT_FALSE(here.kernel_release.empty());
  EXPECT_GE(here.kernel_major, 5U);
  EXPECT_FALSE(here.cpus.empty());
  EXPECT_GT(here.memory_bytes, 0U);
  const HostFacts nothing = gather_host_facts("/nonexistent");
  EXPECT_EQ(nothing.unenforced.size(), 3U);
  EXPECT_FALSE(refuse_failed(judge(nothing, usual_needs())));
}

}  // namespace
}  // namespace hutch::plan
