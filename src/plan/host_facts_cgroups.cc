// What is read about control groups: whose they are, and which limits they can hold.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "base/sys.h"
#include "plan/host_read.h"

namespace hutch::plan {
namespace {

using isolation::CgroupVersion;

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

struct Need {
  const char* limit;
  const char* controller;
};

constexpr Need kNeeds[] = {{"memory", "memory"}, {"processes", "pids"}, {"cpus", "cpu"}};

// What another user could write, without being that user.
bool is_writable(const HostFacts& facts, const std::string& path, bool as_ourselves) {
  if (as_ourselves) return ::access(path.c_str(), W_OK) == 0;
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && info.st_uid == facts.user.uid;
}

void read_unenforced_v1(HostFacts& facts, bool as_ourselves) {
  for (const Need& need : kNeeds) {
    const auto own = facts.cgroups.v1.find(need.controller);
    if (own == facts.cgroups.v1.end()) {
      facts.unenforced.push_back({need.limit, std::string("the controller ") + need.controller +
                                                  " is not mounted, or not for our own group"});
    } else if (!is_writable(facts, own->second, as_ourselves)) {
      facts.unenforced.push_back({need.limit, own->second + " cannot be written"});
    } else if (own->first == "memory" && facts.swap_bytes > 0 &&
               !sys::exists(own->second + "/memory.memsw.limit_in_bytes")) {
      facts.unenforced.push_back({need.limit, "there is swap, and the kernel does not count it"});
    }
  }
}

void read_unenforced_v2(HostFacts& facts, bool as_ourselves) {
  const auto& handed_down = facts.cgroups.v2_controllers;
  const std::string& own = facts.cgroups.v2;
  // A root group has no limit, and tells nothing about the ones below.
  const bool uncounted_swap = facts.swap_bytes > 0 && sys::exists(own + "/memory.max") &&
                              !sys::exists(own + "/memory.swap.max");
  for (const Need& need : kNeeds) {
    if (std::ranges::find(handed_down, need.controller) == handed_down.end()) {
      facts.unenforced.push_back({need.limit, std::string("the controller ") + need.controller +
                                                  " is not handed down to " + own});
    } else if (!is_writable(facts, own, as_ourselves)) {
      facts.unenforced.push_back({need.limit, own + " cannot be written"});
    } else if (facts.cgroup_is_shared) {
      facts.unenforced.push_back(
          {need.limit, own + " holds processes of others, and so hands no controller down"});
    } else if (uncounted_swap && need.controller == std::string_view("memory")) {
      facts.unenforced.push_back({need.limit, "there is swap, and the kernel does not count it"});
    }
  }
}

void read_unenforced(HostFacts& facts, bool as_ourselves) {
  facts.unenforced.clear();
  switch (facts.cgroups.version) {
    case CgroupVersion::v1: read_unenforced_v1(facts, as_ourselves); return;
    case CgroupVersion::v2: read_unenforced_v2(facts, as_ourselves); return;
    case CgroupVersion::none: break;
  }
  for (const Need& need : kNeeds) {
    facts.unenforced.push_back({need.limit, "no control groups are mounted"});
  }
}

// A group of v2 that is not the root can hand controllers down only when it holds no process. Ours
// moves aside; those of others (a shell, a session) do not.
bool is_shared(const std::string& root, const std::string& own) {
  if (!sys::exists(own + "/cgroup.type")) return false;
  const std::vector<std::string> handed = split(text_of(own + "/cgroup.subtree_control"), " \n");
  const bool hands_down = std::ranges::all_of(kNeeds, [&](const Need& need) {
    return std::ranges::find(handed, need.controller) != handed.end();
  });
  if (hands_down) return false;
  const std::string status = text_of(root + "/proc/self/status");
  const std::string_view self = line_of(status, "Pid:");
  const std::vector<std::string> members = split(text_of(own + "/cgroup.procs"), "\n");
  return std::ranges::any_of(members, [&](const std::string& pid) { return pid != self; });
}

std::uint64_t read_processes_max(const isolation::CgroupLayout& cgroups) {
  if (cgroups.version == CgroupVersion::v2) return number_of(cgroups.v2 + "/pids.max", kUnlimited);
  const auto own = cgroups.v1.find("pids");
  return own == cgroups.v1.end() ? kUnlimited : number_of(own->second + "/pids.max", kUnlimited);
}

std::string user_service(const std::string& root, std::uint32_t uid) {
  const std::string number = std::to_string(uid);
  return root + "/sys/fs/cgroup/user.slice/user-" + number + ".slice/user@" + number + ".service";
}

std::vector<std::string> controllers_of(const std::string& group) {
  return split(text_of(group + "/cgroup.controllers"), " \n");
}

}  // namespace

void read_cgroups(const std::string& root, HostFacts& facts) {
  isolation::CgroupKernel kernel;
  auto layout = isolation::detect_cgroups(kernel, root);
  // Unreadable counts as absent: every limit is then named as one that does not hold.
  if (layout) facts.cgroups = std::move(*layout);
  if (facts.cgroups.version == CgroupVersion::v2) {
    facts.cgroup_is_shared = is_shared(root, facts.cgroups.v2);
    facts.user_service_controllers = controllers_of(user_service(root, facts.user.uid));
  }
  facts.group_processes_max = read_processes_max(facts.cgroups);
  read_unenforced(facts, true);
}

void read_delegated_cgroups(const std::string& root, HostFacts& facts) {
  facts.cgroup_is_shared = false;
  facts.user_service_controllers.clear();
  if (facts.cgroups.version == CgroupVersion::v2) {
    facts.cgroups.v2 = user_service(root, facts.user.uid);
    facts.user_service_controllers = controllers_of(facts.cgroups.v2);
    facts.cgroups.v2_controllers = facts.user_service_controllers;
  }
  facts.group_processes_max = read_processes_max(facts.cgroups);
  read_unenforced(facts, false);
}

}  // namespace hutch::plan
