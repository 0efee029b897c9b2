#include <algorithm>
#include <array>

#include "plan/host_rules.h"

namespace hutch::plan {
namespace {

using isolation::CgroupVersion;

constexpr std::array<std::string_view, 3> kLimits{"memory", "processes", "cpus"};
constexpr std::string_view kDelegatedStart =
    "systemd-run --user --scope -p Delegate=yes hutch serve";

bool is_waived(const HostNeeds& needs, std::string_view limit) {
  return std::ranges::find(needs.waived, limit) != needs.waived.end();
}

const isolation::UnenforcedLimit* find_unenforced(const HostFacts& facts, std::string_view limit) {
  const auto found = std::ranges::find(facts.unenforced, limit, &isolation::UnenforcedLimit::name);
  return found == facts.unenforced.end() ? nullptr : &*found;
}

bool swap_is_uncounted(const HostFacts& facts) {
  const isolation::UnenforcedLimit* memory = find_unenforced(facts, "memory");
  return memory != nullptr && facts.swap_bytes > 0 &&
         memory->reason.find("swap") != std::string::npos;
}

std::string waiving(const std::vector<std::string>& limits) {
  std::string list;
  for (const std::string& limit : limits) list += (list.empty() ? "" : ",") + limit;
  return "hutch serve --set waive=" + list;
}

// What systemd hands down to a user is said in one place for all users.
std::string delegation_drop_in() {
  return "sudo mkdir -p /etc/systemd/system/user@.service.d && "
         "printf '[Service]\\nDelegate=cpu memory pids\\n' | "
         "sudo tee /etc/systemd/system/user@.service.d/delegate.conf && "
         "sudo systemctl daemon-reload && sudo systemctl restart user@$(id -u), then " +
         std::string(kDelegatedStart);
}

std::string remedy_without_root(const HostFacts& facts, const std::vector<std::string>& limits) {
  if (facts.cgroups.version != CgroupVersion::v2 || !facts.systemd) return waiving(limits);
  for (const std::string_view controller : {"memory", "pids", "cpu"}) {
    const auto& handed_down = facts.user_service_controllers;
    if (std::ranges::find(handed_down, controller) == handed_down.end()) {
      return delegation_drop_in();
    }
  }
  return std::string(kDelegatedStart);
}

std::string mount_controllers(const std::vector<std::string>& limits) {
  std::string commands;
  for (const std::string& limit : limits) {
    const std::string name = limit == "processes" ? "pids" : limit == "cpus" ? "cpu" : limit;
    const std::string place = "/sys/fs/cgroup/" + name;
    commands += (commands.empty() ? "" : " && ") + std::string("mkdir -p ") + place +
                " && mount -t cgroup -o " + name + " " + name + " " + place;
  }
  return commands;
}

std::string remedy_of(const HostFacts& facts, const std::vector<std::string>& limits) {
  if (swap_is_uncounted(facts) && limits.size() == 1) return as_root(facts, "swapoff -a");
  if (is_rootless(facts)) return remedy_without_root(facts, limits);
  if (facts.cgroups.version == CgroupVersion::v2 && facts.systemd) {
    return "systemd-run --scope -p Delegate=yes hutch serve";
  }
  if (facts.container == "docker" || facts.container == "podman") {
    return facts.container +
           " run --privileged --cgroupns=host -v /sys/fs/cgroup:/sys/fs/cgroup ...";
  }
  if (facts.cgroups.version == CgroupVersion::v2) {
    return "for c in memory pids cpu; do echo +$c; done > /sys/fs/cgroup/cgroup.subtree_control";
  }
  if (facts.cgroups.version == CgroupVersion::none) {
    return "mount -t cgroup2 cgroup2 /sys/fs/cgroup";
  }
  return mount_controllers(limits);
}

// A waiver is what this host has already; what is left is another way to hold the limits.
std::string remedy_of_waived(const HostFacts& facts, const std::vector<std::string>& limits) {
  std::string remedy = remedy_of(facts, limits);
  return remedy == waiving(limits) ? "sudo hutch serve" : remedy;
}

}  // namespace

Finding judge_cgroups(const HostFacts& facts, const HostNeeds& needs) {
  constexpr std::string_view kName = "cgroups";
  std::vector<std::string> not_held;
  std::vector<std::string> given_up;
  std::vector<std::string> both;  // a waiver has to name all of them
  std::string reasons;
  for (const std::string_view limit : kLimits) {
    const isolation::UnenforcedLimit* found = find_unenforced(facts, limit);
    std::string reason = found == nullptr ? "" : found->reason;
    if (found == nullptr && facts.cgroups.version == CgroupVersion::none) {
      reason = "no control groups are mounted";
    }
    if (reason.empty()) continue;
    (is_waived(needs, limit) ? given_up : not_held).emplace_back(limit);
    both.emplace_back(limit);
    if (reasons.find(reason) == std::string::npos)
      reasons += (reasons.empty() ? "" : "; ") + reason;
  }
  if (not_held.empty() && given_up.empty()) {
    return pass(kName, "Control groups " + layout_text(facts.cgroups) +
                           " hold memory, processes and cpus.");
  }
  if (not_held.empty()) {
    return caution(kName,
                   "No control group bounds " + enumerate(given_up) + " of a sandbox (" + reasons +
                       "), and that is waived: one run can take all that this host has.",
                   remedy_of_waived(facts, both));
  }
  std::string text = "No limit can be held for " + enumerate(not_held) + ": " + reasons;
  if (!given_up.empty()) text += " (waived: " + enumerate(given_up) + ")";
  // Without root a group is missing that root, or systemd for it, would hand over.
  const bool is_there = facts.cgroups.version != CgroupVersion::none && !swap_is_uncounted(facts);
  return is_rootless(facts) && is_there ? forbidden(kName, text + ".", remedy_of(facts, both))
                                        : failed(kName, text + ".", remedy_of(facts, both));
}

Finding judge_waived(const HostFacts& facts, const HostNeeds& needs) {
  constexpr std::string_view kName = "waived";
  if (needs.waived.empty()) return pass(kName, "No limit is waived.");
  std::vector<std::string> unknown;
  std::vector<std::string> unneeded;
  std::vector<std::string> needed;
  for (const std::string& limit : needs.waived) {
    if (std::ranges::find(kLimits, limit) == kLimits.end()) {
      unknown.push_back("\"" + limit + "\"");
    } else if (find_unenforced(facts, limit) == nullptr &&
               facts.cgroups.version != CgroupVersion::none) {
      unneeded.push_back(limit);
    } else {
      needed.push_back(limit);
    }
  }
  if (!unknown.empty()) {
    return caution(kName, "The waiver of " + enumerate(unknown) + " names no limit.",
                   "hutch serve --set waive=memory,processes,cpus");
  }
  if (!unneeded.empty()) {
    return caution(kName,
                   "The waiver of " + enumerate(unneeded) +
                       " is not needed: this host holds the limit, and it stays in force.",
                   needed.empty() ? "hutch serve" : waiving(needed));
  }
  return pass(kName, "Waived, because this host cannot hold it: " + enumerate(needed) + ".");
}

Finding judge_swap(const HostFacts& facts) {
  constexpr std::string_view kName = "swap";
  if (facts.swap_bytes == 0) return pass(kName, "There is no swap.");
  if (!swap_is_uncounted(facts)) return pass(kName, "There is swap, and sandboxes get none of it.");
  return caution(kName,
                 "There is swap, and the kernel does not count it: a sandbox could fill it beside "
                 "its memory.",
                 as_root(facts, "swapoff -a"));
}

}  // namespace hutch::plan
