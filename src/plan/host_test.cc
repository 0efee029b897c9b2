#include "plan/host.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "plan/host_fixture.h"
#include "plan/host_rules.h"
#include "plan/plan.h"

namespace hutch::plan {
namespace {

using enum FindingVerdict;

TEST(Judge, AGoodHostPassesEverything) {
  for (const HostFacts& host : {good_host(), good_rootless_host()}) {
    const auto findings = judge(host, usual_needs());
    std::set<std::string_view> names;
    for (const Finding& one : findings) {
      EXPECT_TRUE(one.verdict == pass || one.verdict == skipped) << one.name << one.meaning;
      EXPECT_TRUE(one.remedy.empty()) << one.name;
      EXPECT_TRUE(names.insert(one.name).second) << one.name;
    }
    EXPECT_TRUE(refuse_failed(findings));
  }
}

// tidy: long, a table
TEST(Judge, MachineAndKernel) {
  expect_cases(
      good_host(),
      {
          {"kernel", pass, [](auto& f) { f.kernel_major = 5, f.kernel_minor = 12; }, {"6.1.0"}},
          {"kernel",
           fail,
           [](auto& f) { f.kernel_major = 5, f.kernel_minor = 11; },
           {"older than 5.12", "apt-get install"}},
          {"kernel", fail, [](auto& f) { f.gvisor = true; }, {"gVisor", "--runtime=runc"}},
          {"kernel", fail, [](auto& f) { f.wsl = 1; }, {"WSL 1", "wsl.exe"}},
          {"machine", pass, [](auto& f) { f.machine = "aarch64"; }, {"aarch64"}},
          {"machine", skipped, [](auto& f) { f.machine.clear(); }, {"does not say"}},
          {"machine", fail, [](auto& f) { f.machine = "i686"; }, {"i686", "64-bit"}},
          {"container", caution, [](auto& f) { f.wsl = 2; }, {"WSL 2", "/etc/wsl.conf"}},
          {"container", caution, [](auto& f) { f.container = "docker"; }, {"docker run --priv"}},
          {"container", caution, [](auto& f) { f.container = "podman"; }, {"podman run --priv"}},
          {"container", caution, [](auto& f) { f.container = "lxc"; }, {"security.nesting"}},
          {"container", caution, [](auto& f) { f.container = "nspawn"; }, {"nspawn", "host"}},
          {"proc",
           fail,
           [](auto& f) {
             f.proc_masks = {"/proc/kcore", "/proc/keys"};
           },
           {"/proc/kcore and others", "umount /proc/kcore"}},
          {"proc",
           fail,
           [](auto& f) { f.proc_masks = {"/proc/acpi"}, f.container = "docker"; },
           {"systempaths=unconfined"}},
          {"proc",
           fail,
           [](auto& f) { f.proc_masks = {"/proc/acpi"}, f.container = "podman"; },
           {"unmask=ALL"}},
          {"proc", fail, [](auto& f) { f.proc_readonly = true; }, {"read-only", "remount,rw"}},
          {"seccomp", fail, [](auto& f) { f.seccomp = false; }, {"CONFIG_SECCOMP_FILTER"}},
          {"seccomp", pass, [](auto& f) { f.user.is_filtered = true; }, {"already"}},
          {"keyrings", fail, [](auto& f) { f.keyrings = false; }, {"CONFIG_KEYS"}},
          {"keyrings",
           fail,
           [](auto& f) { f.keyrings = false, f.container = "docker"; },
           {"seccomp=unconfined"}},
          {"erofs", caution, [](auto& f) { f.erofs = false; }, {"directories", "modprobe erofs"}},
          {"image_tools", skipped, [](auto& f) { f.erofs = false; }, {"Without erofs"}},
          {"image_tools", caution, [](auto& f) { f.mkfs_erofs = {}; }, {"erofs-utils"}},
          {"images", skipped, [](auto&) {}, {"No state directory"}},
          {"images", pass, [](auto& f) { f.images_directory = "/s"; }, {"started from /s"}},
          {"images",
           pass,
           [](auto& f) { f.images_directory = "/s", f.images_noexec = true; },
           {"mounted anew"}},
          {"images",
           fail,
           [](auto& f) { f.images_directory = "/s", f.images_noexec = true, f.erofs = false; },
           {"noexec", "mount -o remount,exec /s"}},
          {"landlock", skipped, [](auto& f) { f.landlock = 0; }, {"depends"}},
          {"landlock", pass, [](auto& f) { f.landlock = 7; }, {"ABI 7"}},
          {"selinux", caution, [](auto& f) { f.selinux_enforcing = true; }, {"ausearch"}},
          {"core_dumps",
           caution,
           [](auto& f) { f.core_handler = "/usr/share/apport/apport"; },
           {"apport", "kernel.core_pattern=core"}},
          {"run_directory",
           fail,
           [](auto& f) { f.run_directory_fault = "cannot be written"; },
           {"/run/hutch", "remount,rw /run"}},
          {"run_directory",
           fail,
           [](auto& f) { f.run_directory_fault = "is no directory"; },
           {"rm /run/hutch"}},
      });
}

TEST(Judge, PrivilegeOfRoot) {
  expect_cases(
      good_host(),
      {
          {"privilege",
           fail,
           [](auto& f) { f.user.capabilities &= ~(1ULL << CAP_SYS_ADMIN | 1ULL << CAP_MKNOD); },
           {"CAP_SYS_ADMIN and CAP_MKNOD", "docker run --privileged"}},
          {"privilege", pass, [](auto& f) { f.user.in_user_namespace = true; }, {"Rootless"}},
          {"user_namespaces", fail, [](auto& f) { f.user_namespaces = false; }, {"CONFIG_USER_NS"}},
          {"user_namespaces",
           fail,
           [](auto& f) { f.namespaces_max["user"] = 0; },
           {"switched off", "sysctl -w user.max_user_namespaces=15000"}},
          {"user_namespaces", pass, [](auto& f) { f.user_namespaces_for_all = false; }, {}},
          {"user_namespaces", pass, [](auto& f) { f.user_namespaces_by_apparmor = true; }, {}},
          {"namespaces",
           fail,
           [](auto& f) {
             f.namespaces = {"mnt", "pid", "ipc", "uts"};
           },
           {"net and cgroup"}},
          {"namespace_limits",
           fail,
           [](auto& f) { f.namespaces_max["net"] = 5; },
           {"user.max_net_namespaces (5)", "sysctl -w user.max_net_namespaces=15000"}},
          {"namespace_limits",
           caution,
           [](auto& f) { f.namespaces_max["mnt"] = 69, f.namespaces_max["pid"] = 6; },
           {"user.max_mnt_namespaces=15000 user.max_pid_namespaces=15000"}},
          {"namespace_limits", pass, [](auto& f) { f.namespaces_max["time"] = 0; }, {}},
          {"subordinate_ids", skipped, [](auto&) {}, {"nobody"}},
          {"subordinate_ids",
           fail,
           [](auto& f) { f.user.in_user_namespace = true, f.user.mapped_gids = 1000; },
           {"has 1000 ids", "--userns=auto"}},
          {"subordinate_ids",
           pass,
           [](auto& f) { f.user.in_user_namespace = true; },
           {"ids to give"}},
          {"id_map_tools", skipped, [](auto&) {}, {"Root"}},
          {"devices", skipped, [](auto&) {}, {"Root"}},
          {"process_limit", skipped, [](auto&) {}, {"Root"}},
          {"uid_ranges", fail, [](auto& f) { f.uid_ranges_free = 0; }, {"/etc/subuid"}},
      });
}

TEST(Judge, RoomOnTheHost) {
  expect_cases(
      good_host(),
      {
          {"overcommit", caution, [](auto& f) { f.overcommit = 2; }, {"vm.overcommit_memory=0"}},
          {"pid_max", caution, [](auto& f) { f.pid_max = 2000; }, {"kernel.pid_max=4194304"}},
          {"pid_max", caution, [](auto& f) { f.threads_max = 2000; }, {"kernel.threads-max"}},
          {"pid_max", caution, [](auto& f) { f.group_processes_max = 100; }, {"TasksMax"}},
          {"pid_max",
           caution,
           [](auto& f) { f.group_processes_max = 100, f.container = "docker"; },
           {"--pids-limit=-1"}},
          {"open_files",
           fail,
           [](auto& f) { f.user.open_files_max = 48; },
           {"may open 48 files (ulimit -Hn)", "prlimit --nofile=65536:65536 hutch serve"}},
          {"open_files", caution, [](auto& f) { f.user.open_files_max = 512; }, {"full use"}},
          {"open_files", caution, [](auto& f) { f.user.open_files_max = 1000; }, {"1024"}},
          {"resource_limits",
           fail,
           [](auto& f) { f.user.limits_max["memlock"] = 0, f.user.limits_max.erase("stack"); },
           {"stack (unknown", "memlock (0, ", "prlimit --stack=8388608:8388608 --memlock="}},
          {"inotify", fail, [](auto& f) { f.inotify_instances_max = 2; }, {"a start takes 3"}},
          {"inotify",
           caution,
           [](auto& f) { f.inotify_instances_max = 66; },
           {"full use takes 67", "fs.inotify.max_user_instances=1024"}},
          {"inotify",
           skipped,
           [](auto& f) { f.cgroups.version = isolation::CgroupVersion::v1; },
           {"v2"}},
          {"map_count", caution, [](auto& f) { f.max_map_count = 4096; }, {"vm.max_map_count="}},
          {"memory",
           fail,
           [](auto& f) { f.memory_bytes = 256_MiB; },
           {"256 MiB in all", "limits.memory_bytes=67108864"}},
          {"memory",
           caution,
           [](auto& f) { f.memory_available_bytes = 1_GiB; },
           {"3 sandboxes", "pool.target=1"}},
          {"cpus", pass, [](auto& f) { f.cpus = {0}; }, {"1 processor, 1 for one sandbox"}},
          {"cpus", fail, [](auto& f) { f.cpus = {}; }, {"mount -t proc"}},
          {"memory_killer",
           caution,
           [](auto& f) { f.user.capabilities &= ~(1ULL << CAP_SYS_RESOURCE); },
           {"CAP_SYS_RESOURCE", "systemctl edit"}},
          {"memory_killer",
           caution,
           [](auto& f) { f.user.capabilities = 0, f.container = "docker"; },
           {"--cap-add=SYS_RESOURCE"}},
      });
}

TEST(Judge, CountsProcessorsAgainstTheLimit) {
  HostNeeds needs = usual_needs();
  needs.cpus = 4.5;
  for (const Finding& one : judge(good_host(), needs)) {
    EXPECT_EQ(one.verdict == caution, one.name == "cpus") << one.name;
  }
  needs.sandboxes = 1;
  needs.memory_bytes = 7_GiB;
  EXPECT_NE(finding(good_host(), "memory", needs).remedy.find("limits.memory_bytes=3221225472"),
            std::string::npos);
}

// What a program is given is what is asked for.
TEST(Judge, ResourceLimitsAreThoseOfThePlan) {
  const auto plan = make_plan({.memory_bytes = 1_MiB, .open_files = 64},
                              {.cpus = {0}, .open_files_max = 64, .zone_path = "/z"});
  ASSERT_TRUE(plan);
  for (const ResourceNeed& need : resource_needs()) {
    bool is_planned = false;
    for (const isolation::Action& action : plan->program) {
      if (action.op != isolation::Op::set_rlimit || action.a != need.resource) continue;
      is_planned = true;
      EXPECT_EQ(static_cast<std::uint64_t>(action.c), need.least) << need.name;
    }
    EXPECT_TRUE(is_planned) << need.name;
  }
}

TEST(Judge, KeepsNamesAndOrder) {
  const auto good = judge(good_host(), usual_needs());
  const auto bad = judge(HostFacts{}, usual_needs());
  ASSERT_EQ(good.size(), bad.size());
  for (std::size_t i = 0; i < good.size(); ++i) EXPECT_EQ(good[i].name, bad[i].name);
}

// docs/doctor.md has one row for each finding, in the same order.
TEST(Judge, EveryFindingIsDocumented) {
  std::ifstream file(std::string(HUTCH_SOURCE_DIR) + "/docs/doctor.md");
  std::vector<std::string> documented;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("| `")) documented.push_back(line.substr(3, line.find('`', 3) - 3));
  }
  std::vector<std::string> found;
  for (const Finding& one : judge(good_host(), usual_needs())) found.emplace_back(one.name);
  EXPECT_EQ(found, documented);
}

TEST(Judge, CommandsForRootAreTypedWithSudoByOthers) {
  HostFacts facts = good_rootless_host();
  facts.overcommit = 2;
  EXPECT_TRUE(finding(facts, "overcommit").remedy.starts_with("sudo sysctl"));
  facts.user.is_root = true;
  EXPECT_TRUE(finding(facts, "overcommit").remedy.starts_with("sysctl"));
}

TEST(RefuseFailed, TellsPrivilegeFromTheRest) {
  HostFacts facts = good_rootless_host();
  facts.user.subordinate_uids.clear();
  const auto privilege = refuse_failed(judge(facts, usual_needs()));
  ASSERT_FALSE(privilege);
  EXPECT_EQ(privilege.error().code, ErrorCode::not_permitted);
  EXPECT_NE(privilege.error().message.find("sudo hutch serve"), std::string::npos);
  facts.seccomp = false;
  const auto both = refuse_failed(judge(facts, usual_needs()));
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().code, ErrorCode::unsupported_host);
  EXPECT_NE(both.error().message.find("/etc/subuid"), std::string::npos);
  EXPECT_NE(both.error().message.find("CONFIG_SECCOMP_FILTER"), std::string::npos);
}

TEST(RefuseFailed, RootWithoutCapabilitiesIsNotSentToRoot) {
  HostFacts facts = good_host();
  facts.user.capabilities = 0;
  const auto refused = refuse_failed(judge(facts, usual_needs()));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::not_permitted);
  EXPECT_EQ(refused.error().message.find("sudo"), std::string::npos);
}

}  // namespace
}  // namespace hutch::plan
