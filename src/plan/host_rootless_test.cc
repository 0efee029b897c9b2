// Rules whose verdict depends on who asks, and on who hands control groups down.
#include <gtest/gtest.h>

#include "plan/host_fixture.h"

namespace hutch::plan {
namespace {

using enum FindingVerdict;

using isolation::CgroupVersion;

const std::vector<isolation::UnenforcedLimit> kNothingHeld{{"memory", "/g cannot be written"},
                                                           {"processes", "/g cannot be written"},
                                                           {"cpus", "/g cannot be written"}};

// tidy: long, a table
TEST(JudgeRootless, SaysWhatAnOrdinaryUserLacks) {
  expect_cases(
      good_rootless_host(),
      {
          {"privilege", pass, [](auto&) {}, {"Rootless", "ann"}},
          {"user_namespaces",
           fail,
           [](auto& f) { f.user_namespaces_for_all = false; },
           {"sudo sysctl -w kernel.unprivileged_userns_clone=1"}},
          {"user_namespaces",
           fail,
           [](auto& f) {
             f.user_namespaces_by_apparmor = true;
             f.user.apparmor_label = "unconfined";
           },
           {"AppArmor", "kernel.apparmor_restrict_unprivileged_userns=0"}},
          {"user_namespaces",
           pass,
           [](auto& f) {
             f.user_namespaces_by_apparmor = true;
             f.user.apparmor_label = "hutch (unconfined)";
           },
           {}},
          {"subordinate_ids", pass, [](auto&) {}, {"65536"}},
          {"subordinate_ids",
           fail,
           [](auto& f) { f.user.subordinate_uids.clear(); },
           {"users: none", "echo 'ann:165536:65536' | sudo tee -a /etc/subuid"}},
          {"subordinate_ids",
           fail,
           [](auto& f) {
             f.user.subordinate_gids = {{100'000, 1000}};
           },
           {"groups: at most 1000 in one range", "sudo tee -a /etc/subgid"}},
          {"subordinate_ids",
           fail,
           [](auto& f) { f.user.subordinate_uids = f.user.subordinate_gids = {}; },
           {"sudo tee -a /etc/subuid /etc/subgid"}},
          {"subordinate_ids",
           caution,
           [](auto& f) { f.user.subordinate_ids_clash = "the account bob"; },
           {"the account bob"}},
          {"subordinate_ids",
           caution,
           [](auto& f) {
             f.user.subordinate_uids.clear();
             f.user.subordinate_ids_elsewhere = true;
           },
           {"nsswitch", "getsubids ann"}},
          {"id_map_tools",
           fail,
           [](auto& f) { f.user.newuidmap = {}; },
           {"no newuidmap", "apt-get install uidmap"}},
          {"id_map_tools",
           fail,
           [](auto& f) { f.user.newgidmap = {}; },
           {"no newgidmap", "apt-get install uidmap"}},
          {"id_map_tools",
           fail,
           [](auto& f) { f.user.newgidmap.privileged = false; },
           {"neither setuid", "sudo chmod u+s /usr/bin/newgidmap"}},
          {"id_map_tools", fail, [](auto& f) { f.user.no_new_privs = true; }, {"no_new_privs"}},
          {"id_map_tools", pass, [](auto&) {}, {"newgidmap"}},
          {"uid_ranges", skipped, [](auto&) {}, {"subordinate"}},
          {"erofs", skipped, [](auto& f) { f.erofs = false; }, {"directories"}},
          {"image_tools", pass, [](auto&) {}, {"/usr/bin/fsck.erofs"}},
          {"image_tools", caution, [](auto& f) { f.fsck_erofs = {}; }, {"sudo apt-get install"}},
          {"images",
           fail,
           [](auto& f) { f.images_directory = "/s", f.images_noexec = true; },
           {"noexec", "--state-dir DIR"}},
          {"devices",
           fail,
           [](auto& f) {
             f.devices_missing = {"/dev/full", "/dev/zero"};
           },
           {"/dev/full and /dev/zero", "sudo mknod -m 666 /dev/full c 1 7"}},
          {"run_directory", skipped, [](auto&) {}, {"user namespace"}},
          {"process_limit",
           caution,
           [](auto& f) { f.user.processes_max = 100; },
           {"ulimit -u", "limits.d/hutch.conf"}},
          {"memory_killer", skipped, [](auto&) {}, {"Without root"}},
      });
}

TEST(JudgeCgroups, WithoutRootSaysWhoHandsGroupsDown) {
  expect_cases(
      good_rootless_host(),
      {
          {"cgroups", pass, [](auto&) {}, {"v2"}},
          {"cgroups",
           fail,
           [](auto& f) { f.unenforced = kNothingHeld; },
           {"systemd-run --user --scope -p Delegate=yes"}},
          {"cgroups",
           fail,
           [](auto& f) {
             f.unenforced = {{"cpus", "the controller cpu is not handed down to /g"}};
             f.user_service_controllers = {"memory", "pids"};
           },
           {"cpus: the controller cpu", "user@.service.d/delegate.conf"}},
          {"cgroups",
           fail,
           [](auto& f) { f.unenforced = kNothingHeld, f.systemd = false; },
           {"--set waive=memory,processes,cpus"}},
          {"cgroups",
           fail,
           [](auto& f) { f.unenforced = kNothingHeld, f.cgroups.version = CgroupVersion::v1; },
           {"--set waive=memory,processes,cpus"}},
      });
  HostFacts facts = good_rootless_host();
  facts.unenforced = kNothingHeld;
  EXPECT_TRUE(finding(facts, "cgroups").is_privilege);
  facts.cgroups.version = CgroupVersion::none;
  EXPECT_FALSE(finding(facts, "cgroups").is_privilege);
}

TEST(JudgeCgroups, OfRoot) {
  expect_cases(
      good_host(),
      {
          {"cgroups",
           fail,
           [](auto& f) { f.unenforced = kNothingHeld; },
           {"memory, processes and cpus", "systemd-run --scope -p Delegate=yes"}},
          {"cgroups",
           fail,
           [](auto& f) { f.unenforced = kNothingHeld, f.systemd = false; },
           {"cgroup.subtree_control"}},
          {"cgroups",
           fail,
           [](auto& f) {
             f.unenforced = kNothingHeld;
             f.systemd = false;
             f.container = "docker";
           },
           {"--cgroupns=host"}},
          {"cgroups", fail, [](auto& f) { f.cgroups = {}; }, {"mount -t cgroup2"}},
          {"cgroups",
           fail,
           [](auto& f) {
             f.cgroups.version = CgroupVersion::v1;
             f.unenforced = {{"cpus", "the controller cpu is not mounted"}};
           },
           {"mkdir -p /sys/fs/cgroup/cpu && mount -t cgroup -o cpu cpu /sys/fs/cgroup/cpu"}},
          {"cgroups",
           fail,
           [](auto& f) {
             f.cgroups.version = CgroupVersion::v1;
             f.swap_bytes = 1_GiB;
             f.unenforced = {{"memory", "there is swap, and the kernel does not count it"}};
           },
           {"swap", "swapoff -a"}},
          {"swap", pass, [](auto& f) { f.swap_bytes = 1_GiB; }, {"none of it"}},
          {"swap",
           caution,
           [](auto& f) {
             f.swap_bytes = 1_GiB;
             f.unenforced = {{"memory", "there is swap, and the kernel does not count it"}};
           },
           {"swapoff -a"}},
      });
}

TEST(JudgeCgroups, AWaiverTurnsAFailureIntoACautionThatNamesTheLimit) {
  HostFacts facts = good_rootless_host();
  facts.unenforced = kNothingHeld;
  HostNeeds needs = usual_needs();
  needs.waived = {"memory", "cpus"};
  const Finding some = finding(facts, "cgroups", needs);
  EXPECT_EQ(some.verdict, fail);
  EXPECT_NE(some.meaning.find("held for processes:"), std::string::npos) << some.meaning;
  EXPECT_NE(some.meaning.find("waived: memory and cpus"), std::string::npos) << some.meaning;
  needs.waived = {"memory", "processes", "cpus"};
  const Finding all = finding(facts, "cgroups", needs);
  EXPECT_EQ(all.verdict, caution);
  EXPECT_NE(all.meaning.find("bounds memory, processes and cpus"), std::string::npos);
  EXPECT_TRUE(refuse_failed(judge(facts, needs)));
  EXPECT_EQ(limits_not_held(facts, needs), needs.waived);
  EXPECT_EQ(finding(facts, "waived", needs).verdict, pass);
  facts.cgroups = {};
  facts.unenforced.clear();
  EXPECT_EQ(finding(facts, "cgroups", needs).verdict, caution);
}

TEST(JudgeCgroups, AWaiverThatIsUnknownOrNotNeededIsACaution) {
  HostNeeds needs = usual_needs();
  needs.waived = {"disk"};
  const Finding unknown = finding(good_host(), "waived", needs);
  EXPECT_EQ(unknown.verdict, caution);
  EXPECT_NE(unknown.meaning.find("\"disk\" names no limit"), std::string::npos);
  HostFacts facts = good_host();
  facts.unenforced = {{"cpus", "the controller cpu is not mounted"}};
  needs.waived = {"memory", "cpus"};
  const Finding unneeded = finding(facts, "waived", needs);
  EXPECT_EQ(unneeded.verdict, caution);
  EXPECT_NE(unneeded.meaning.find("waiver of memory is not needed"), std::string::npos);
  EXPECT_NE(unneeded.remedy.find("--set waive=cpus"), std::string::npos);
  EXPECT_EQ(limits_not_held(facts, needs), std::vector<std::string>{"cpus"});
  EXPECT_TRUE(limits_not_held(good_host(), needs).empty());
}

}  // namespace
}  // namespace hutch::plan
