// Made-up hosts for tests: one on which everything is well, for root and for an ordinary user, and
// a table of what one change of it is worth.
#pragma once

#include <gtest/gtest.h>
#include <linux/capability.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "plan/host.h"

namespace hutch::plan {

inline HostFacts good_host() {
  HostFacts facts;
  facts.kernel_release = "6.1.0-28-amd64";
  facts.kernel_major = 6;
  facts.kernel_minor = 1;
  facts.machine = "x86_64";
  facts.systemd = true;
  facts.user.is_root = true;
  facts.user.name = "root";
  facts.user.capabilities = (1ULL << 41U) - 1;
  facts.user.processes_max = 30'000;
  facts.user.open_files_max = 65'536;
  facts.user.limits_max = {
      {"stack", ~0ULL}, {"memlock", 8_MiB}, {"msgqueue", 819'200}, {"sigpending", 30'000}};
  facts.user.mapped_uids = 4'294'967'295;
  facts.user.mapped_gids = 4'294'967'295;
  facts.user_namespaces = true;
  facts.namespaces = {"mnt", "pid", "net", "ipc", "uts", "cgroup"};
  for (const char* kind : {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"}) {
    facts.namespaces_max[kind] = 15'000;
  }
  facts.cgroups.version = isolation::CgroupVersion::v2;
  facts.cgroups.v2 = "/sys/fs/cgroup/hutch.service";
  facts.seccomp = true;
  facts.landlock = 2;
  facts.erofs = true;
  facts.keyrings = true;
  facts.mkfs_erofs = {"/usr/bin/mkfs.erofs", false};
  facts.fsck_erofs = {"/usr/bin/fsck.erofs", false};
  facts.uid_ranges_free = 256;
  facts.run_directory = "/run/hutch";
  facts.pid_max = 4'194'304;
  facts.threads_max = 65'536;
  facts.group_processes_max = 65'536;
  facts.max_map_count = 65'530;
  facts.inotify_instances_max = 128;
  facts.memory_bytes = 8_GiB;
  facts.memory_available_bytes = 6_GiB;
  facts.cpus = {0, 1, 2, 3};
  return facts;
}

inline HostFacts good_rootless_host() {
  HostFacts facts = good_host();
  facts.user.is_root = false;
  facts.user.uid = 1000;
  facts.user.name = "ann";
  facts.user.capabilities = 0;
  facts.user.subordinate_uids = {{100'000, 65'536}};
  facts.user.subordinate_gids = {{100'000, 65'536}};
  facts.user.subordinate_ids_free = 165'536;
  facts.user.newuidmap = {"/usr/bin/newuidmap", true};
  facts.user.newgidmap = {"/usr/bin/newgidmap", true};
  facts.cgroups.v2 = "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/hutch.scope";
  facts.user_service_controllers = {"cpu", "memory", "pids"};
  facts.run_directory.clear();
  return facts;
}

inline HostNeeds usual_needs() {
  return {.memory_bytes = 512_MiB,
          .cpus = 1.0,
          .processes = 128,
          .sandboxes = 3,
          .sandboxes_max = 67,
          .open_files = 1024,
          .waived = {}};
}

inline Finding finding(const HostFacts& facts, std::string_view name,
                       const HostNeeds& needs = usual_needs()) {
  for (const Finding& one : judge(facts, needs)) {
    if (one.name == name) return one;
  }
  ADD_FAILURE() << "no finding " << name;
  return {};
}

// One change of a good host, and what the rule of that name then says.
struct HostCase {
  std::string_view name;
  FindingVerdict verdict;
  std::function<void(HostFacts&)> change;
  std::vector<std::string_view> says;  // in the meaning or the remedy
};

inline void expect_cases(const HostFacts& good, const std::vector<HostCase>& cases) {
  for (const HostCase& one : cases) {
    HostFacts facts = good;
    one.change(facts);
    const Finding found = finding(facts, one.name);
    EXPECT_EQ(verdict_name(found.verdict), verdict_name(one.verdict))
        << one.name << ": " << found.meaning;
    const std::string text = found.meaning + " " + found.remedy;
    for (const std::string_view words : one.says) {
      EXPECT_NE(text.find(words), std::string::npos) << one.name << ": " << text;
    }
    const bool is_bad =
        one.verdict == FindingVerdict::fail || one.verdict == FindingVerdict::caution;
    EXPECT_EQ(found.remedy.empty(), !is_bad) << one.name << ": " << text;
    EXPECT_TRUE(found.meaning.ends_with('.')) << one.name << ": " << found.meaning;
  }
}

}  // namespace hutch::plan
