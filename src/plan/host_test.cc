#include "plan/host.h"

#include <gtest/gtest.h>
#include <linux/capability.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/units.h"

namespace hutch::plan {
namespace {

namespace fs = std::filesystem;
using enum FindingVerdict;

HostFacts good_host() {
  HostFacts facts;
  facts.kernel_release = "6.1.0-28-amd64";
  facts.kernel_major = 6;
  facts.kernel_minor = 1;
  facts.is_root = true;
  facts.capabilities = (1ULL << 41U) - 1;
  facts.user_namespaces = true;
  facts.user_namespaces_max = 15000;
  facts.cgroups.version = isolation::CgroupVersion::v2;
  facts.cgroups.v2 = "/sys/fs/cgroup/hutch.service";
  facts.seccomp = true;
  facts.landlock = 2;
  facts.erofs = true;
  facts.pid_max = 4194304;
  facts.memory_bytes = 8_GiB;
  facts.memory_available_bytes = 6_GiB;
  facts.cpus = {0, 1, 2, 3};
  return facts;
}

constexpr HostNeeds kNeeds{.memory_bytes = 512_MiB, .cpus = 1.0, .processes = 128, .sandboxes = 3};

Finding finding(const HostFacts& facts, std::string_view name) {
  for (const Finding& one : judge(facts, kNeeds)) {
    if (one.name == name) return one;
  }
  ADD_FAILURE() << "no finding " << name;
  return {};
}

TEST(Judge, AGoodHostPassesEverything) {
  const auto findings = judge(good_host(), kNeeds);
  for (const Finding& one : findings) {
    EXPECT_EQ(one.verdict, pass) << one.name << ": " << one.meaning;
    EXPECT_TRUE(one.remedy.empty());
  }
  EXPECT_TRUE(refuse_failed(findings));
}

TEST(Judge, NamesEachLackWithAWayOut) {
  struct Case {
    std::string_view name;
    FindingVerdict verdict;
    std::function<void(HostFacts&)> change;
    std::string_view says;  // in the meaning or the remedy
  };
  const std::vector<Case> cases{
      {"kernel", fail,
       [](auto& f) {
         f.kernel_major = 5;
         f.kernel_minor = 11;
       },
       "5.12"},
      {"kernel", pass,
       [](auto& f) {
         f.kernel_major = 5;
         f.kernel_minor = 12;
       },
       ""},
      {"privilege", fail, [](auto& f) { f.is_root = false; }, "sudo"},
      {"privilege", fail, [](auto& f) { f.capabilities &= ~(1ULL << CAP_SYS_ADMIN); },
       "CAP_SYS_ADMIN"},
      {"user_namespaces", fail, [](auto& f) { f.user_namespaces = false; }, "CONFIG_USER_NS"},
      {"user_namespaces", fail, [](auto& f) { f.user_namespaces_max = 0; }, "sysctl -w user.max"},
      {"user_namespaces", pass, [](auto& f) { f.user_namespaces_for_all = false; }, ""},
      {"user_namespaces", fail,
       [](auto& f) {
         f.is_root = false;
         f.user_namespaces_for_all = false;
       },
       "unprivileged_userns_clone=1"},
      {"user_namespaces", fail,
       [](auto& f) {
         f.is_root = false;
         f.user_namespaces_by_apparmor = true;
       },
       "AppArmor"},
      {"cgroups", fail,
       [](auto& f) {
         f.unenforced = {{"memory", "there is swap"}};
       },
       "memory: there is swap"},
      {"cgroups", fail, [](auto& f) { f.cgroups = {}; }, "No control groups"},
      {"seccomp", fail, [](auto& f) { f.seccomp = false; }, "CONFIG_SECCOMP_FILTER"},
      {"proc", fail, [](auto& f) { f.proc_masks = {"/proc/kcore"}; }, "/proc/kcore"},
      {"erofs", caution, [](auto& f) { f.erofs = false; }, "modprobe erofs"},
      {"landlock", skipped, [](auto& f) { f.landlock = 0; }, "depends"},
      {"overcommit", caution, [](auto& f) { f.overcommit = 2; }, "vm.overcommit_memory=0"},
      {"pid_max", caution, [](auto& f) { f.pid_max = 2000; }, "kernel.pid_max"},
      {"memory", fail, [](auto& f) { f.memory_bytes = 256_MiB; }, "256 MiB in all"},
      {"memory", caution, [](auto& f) { f.memory_available_bytes = 1_GiB; }, "3 sandboxes"},
      {"cpus", pass, [](auto& f) { f.cpus = {0}; }, "1 processor, 1 for one sandbox"},
      {"cpus", fail, [](auto& f) { f.cpus = {}; }, "/proc"},
      {"memory_killer", caution, [](auto& f) { f.capabilities &= ~(1ULL << CAP_SYS_RESOURCE); },
       "CAP_SYS_RESOURCE"},
  };
  for (const Case& one : cases) {
    HostFacts facts = good_host();
    one.change(facts);
    const Finding found = finding(facts, one.name);
    EXPECT_EQ(found.verdict, one.verdict) << one.name << ": " << found.meaning;
    const std::string text = found.meaning + " " + found.remedy;
    EXPECT_NE(text.find(one.says), std::string::npos) << text;
    EXPECT_EQ(found.remedy.empty(), one.verdict == pass || one.verdict == skipped) << one.name;
  }
}

TEST(Judge, CountsProcessorsAgainstTheLimit) {
  HostNeeds needs = kNeeds;
  needs.cpus = 4.5;
  for (const Finding& one : judge(good_host(), needs)) {
    EXPECT_EQ(one.verdict, one.name == "cpus" ? caution : pass) << one.name;
  }
}

TEST(Judge, KeepsNamesAndOrder) {
  const auto good = judge(good_host(), kNeeds);
  const auto bad = judge(HostFacts{}, kNeeds);
  ASSERT_EQ(good.size(), bad.size());
  for (std::size_t i = 0; i < good.size(); ++i) EXPECT_EQ(good[i].name, bad[i].name);
}

TEST(RefuseFailed, TellsPrivilegeFromTheRest) {
  HostFacts facts = good_host();
  facts.is_root = false;
  const auto privilege = refuse_failed(judge(facts, kNeeds));
  ASSERT_FALSE(privilege);
  EXPECT_EQ(privilege.error().code, ErrorCode::not_permitted);
  facts.seccomp = false;
  const auto both = refuse_failed(judge(facts, kNeeds));
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().code, ErrorCode::unsupported_host);
  EXPECT_NE(both.error().message.find("sudo"), std::string::npos);
  EXPECT_NE(both.error().message.find("CONFIG_SECCOMP_FILTER"), std::string::npos);
}

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
  EXPECT_TRUE(facts.is_root);
  EXPECT_EQ(facts.capabilities, 0xa80425fbU);
  EXPECT_EQ(facts.cpus, (std::vector<std::uint32_t>{0, 1, 4}));
  EXPECT_TRUE(facts.user_namespaces);
  EXPECT_EQ(facts.user_namespaces_max, 31000U);
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
  EXPECT_FALSE(refuse_failed(judge(nothing, kNeeds)));
}

}  // namespace
}  // namespace hutch::plan
