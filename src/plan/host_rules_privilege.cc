#include <linux/capability.h>

#include <algorithm>
#include <array>

#include "plan/host_rules.h"

namespace hutch::plan {
namespace {

struct Capability {
  unsigned bit;
  const char* name;
};

// What the warden does with its privilege.
constexpr std::array<Capability, 8> kCapabilities{{
    {CAP_SYS_ADMIN, "CAP_SYS_ADMIN"},        // mounts, namespaces
    {CAP_SETUID, "CAP_SETUID"},              // the map of users
    {CAP_SETGID, "CAP_SETGID"},              // the map of groups
    {CAP_CHOWN, "CAP_CHOWN"},                // files for a sandbox's user
    {CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"},  // the state directory, groups of others
    {CAP_MKNOD, "CAP_MKNOD"},                // the devices of a sandbox
    {CAP_KILL, "CAP_KILL"},                  // ending programs of another user
    {CAP_SETPCAP, "CAP_SETPCAP"},            // taking capabilities away for good
}};

// Every kind that a sandbox has of its own, and the zone as well; "user" has a rule of its own.
constexpr std::array<const char*, 6> kKinds{"mnt", "pid", "net", "ipc", "uts", "cgroup"};
// The zone's own, and what the server without root lives in.
constexpr std::uint64_t kNamespacesBeside = 3;
constexpr std::uint64_t kNamespacesAdvised = 15'000;

std::string describe_ranges(const std::vector<IdRange>& ranges) {
  std::uint32_t largest = 0;
  for (const IdRange& range : ranges) largest = std::max(largest, range.count);
  return largest == 0 ? "none" : "at most " + std::to_string(largest) + " in one range";
}

std::string lacking(const HostFacts& facts) {
  std::vector<std::string> names;
  for (const Capability& capability : kCapabilities) {
    if (!has_capability(facts, capability.bit)) names.emplace_back(capability.name);
  }
  return enumerate(names);
}

}  // namespace

Finding judge_privilege(const HostFacts& facts) {
  constexpr std::string_view kName = "privilege";
  if (!facts.user.is_root) {
    return pass(kName, "Rootless: sandboxes are made by the user " + facts.user.name +
                           ", with power over user namespaces of its own only.");
  }
  const std::string missing = lacking(facts);
  if (missing.empty() && facts.user.in_user_namespace) {
    return pass(kName, "Rootless: root of a user namespace, with no power outside it.");
  }
  if (missing.empty()) return pass(kName, "Root, with every capability that is used.");
  const std::string engine = facts.container == "podman" ? "podman" : "docker";
  return forbidden(kName, "Root without " + missing + ", as in a container.",
                   engine + " run --privileged ...");
}

Finding judge_user_namespaces(const HostFacts& facts) {
  constexpr std::string_view kName = "user_namespaces";
  if (!facts.user_namespaces) {
    return failed(kName, "The kernel was built without user namespaces (no CONFIG_USER_NS).",
                  as_root(facts, "apt-get install linux-image-amd64 && reboot"));
  }
  const auto limit = facts.namespaces_max.find("user");
  if (limit != facts.namespaces_max.end() && limit->second == 0) {
    return failed(kName, "User namespaces are switched off.",
                  set_sysctl(facts, "user.max_user_namespaces", kNamespacesAdvised));
  }
  // Root needs neither of the two; only a server of an ordinary user would.
  if (!facts.user.is_root && !facts.user_namespaces_for_all) {
    return forbidden(kName, "User namespaces are for root only.",
                     set_sysctl(facts, "kernel.unprivileged_userns_clone", 1));
  }
  const bool confined =
      !facts.user.apparmor_label.empty() && facts.user.apparmor_label != "unconfined";
  if (!facts.user.is_root && facts.user_namespaces_by_apparmor && !confined) {
    return forbidden(
        kName,
        "AppArmor gives power over a new user namespace only to programs with a profile, "
        "and this one has none.",
        set_sysctl(facts, "kernel.apparmor_restrict_unprivileged_userns", 0));
  }
  return pass(kName, "User namespaces can be made.");
}

Finding judge_namespaces(const HostFacts& facts) {
  constexpr std::string_view kName = "namespaces";
  std::vector<std::string> missing;
  for (const char* kind : kKinds) {
    if (std::ranges::find(facts.namespaces, kind) == facts.namespaces.end()) {
      missing.emplace_back(kind);
    }
  }
  if (missing.empty()) {
    return pass(kName, "The kernel has mount, process, network, ipc, name and cgroup namespaces.");
  }
  return failed(kName, "The kernel has no namespaces of the kinds " + enumerate(missing) + ".",
                as_root(facts, "apt-get install linux-image-amd64 && reboot"));
}

Finding judge_namespace_limits(const HostFacts& facts, const HostNeeds& needs) {
  constexpr std::string_view kName = "namespace_limits";
  const std::uint64_t least = needs.sandboxes + kNamespacesBeside;
  const std::uint64_t most = std::max(needs.sandboxes, needs.sandboxes_max) + kNamespacesBeside;
  std::vector<std::string> low;
  std::string command;
  bool is_fatal = false;
  for (const auto& [kind, limit] : facts.namespaces_max) {
    const bool is_ours = kind == "user" || std::ranges::find(kKinds, kind) != kKinds.end();
    if (!is_ours || limit >= most) continue;
    const std::string setting = "user.max_" + kind + "_namespaces";
    low.push_back(setting + " (" + std::to_string(limit) + ")");
    command += (command.empty() ? "sysctl -w " : " ") + setting + "=" +
               std::to_string(std::max(kNamespacesAdvised, most));
    is_fatal = is_fatal || limit < least;
  }
  if (low.empty()) {
    return pass(kName, "Namespaces for " + std::to_string(most) + " sandboxes may be made.");
  }
  const std::string numbers =
      enumerate(low) + " is less than the " + std::to_string(most) + " that full use takes";
  if (!is_fatal) return caution(kName, numbers + ".", as_root(facts, command));
  return failed(kName, numbers + ", and than the " + std::to_string(least) + " of a start.",
                as_root(facts, command));
}

Finding judge_subordinate_ids(const HostFacts& facts) {
  constexpr std::string_view kName = "subordinate_ids";
  const UserFacts& user = facts.user;
  const std::string wanted = std::to_string(kSubordinateIds);
  if (!is_rootless(facts)) return skipped(kName, "Root takes ids that nobody on this host has.");
  if (user.is_root) {
    const std::uint64_t mapped = std::min(user.mapped_uids, user.mapped_gids);
    if (mapped >= kSubordinateIds) {
      return pass(kName, "This user namespace has " + std::to_string(mapped) + " ids to give.");
    }
    return forbidden(kName,
                     "This user namespace has " + std::to_string(mapped) + " ids, and " + wanted +
                         " are needed.",
                     "podman run --userns=auto:size=131072 ...");
  }
  const bool uids = enough_ids(user.subordinate_uids, kSubordinateIds).has_value();
  const bool gids = enough_ids(user.subordinate_gids, kSubordinateIds).has_value();
  if (uids && gids && user.subordinate_ids_clash.empty()) {
    return pass(kName, "The user " + user.name + " has " + wanted + " user and group ids to give.");
  }
  if (uids && gids) {
    return caution(kName,
                   "The subordinate ids of " + user.name + " are also those of " +
                       user.subordinate_ids_clash + ", whose files sandboxes could then touch.",
                   as_root(facts, "nano /etc/subuid"));
  }
  if (user.subordinate_ids_elsewhere) {
    return caution(kName,
                   "/etc/nsswitch.conf says that subordinate ids come from elsewhere; " + wanted +
                       " of users and of groups are needed.",
                   "getsubids " + user.name + " && getsubids -g " + user.name);
  }
  const std::string files = std::string(uids ? "" : "/etc/subuid") + (uids || gids ? "" : " ") +
                            (gids ? "" : "/etc/subgid");
  return forbidden(kName,
                   "The user " + user.name + " has too few subordinate ids (users: " +
                       describe_ranges(user.subordinate_uids) +
                       "; groups: " + describe_ranges(user.subordinate_gids) + "); " + wanted +
                       " of each are needed.",
                   "echo '" + user.name + ":" + std::to_string(user.subordinate_ids_free) + ":" +
                       wanted + "' | sudo tee -a " + files);
}

Finding judge_id_map_tools(const HostFacts& facts) {
  constexpr std::string_view kName = "id_map_tools";
  const UserFacts& user = facts.user;
  if (user.is_root) return skipped(kName, "Root writes the map of ids itself.");
  if (user.newuidmap.path.empty() || user.newgidmap.path.empty()) {
    const std::string missing = user.newuidmap.path.empty() ? "newuidmap" : "newgidmap";
    return forbidden(kName, "There is no " + missing + ", which maps subordinate ids.",
                     "sudo apt-get install uidmap");
  }
  for (const Tool* tool : {&user.newuidmap, &user.newgidmap}) {
    if (tool->privileged) continue;
    return forbidden(kName,
                     tool->path +
                         " is neither setuid root nor has file capabilities, so it may not "
                         "map subordinate ids.",
                     "sudo chmod u+s " + tool->path);
  }
  if (user.no_new_privs) {
    return forbidden(kName,
                     "This process was started with no_new_privs, so newuidmap gets no privilege.",
                     "systemd-run --user --pty -p Delegate=yes hutch serve");
  }
  return pass(kName, "newuidmap and newgidmap map subordinate ids.");
}

Finding judge_uid_ranges(const HostFacts& facts) {
  constexpr std::string_view kName = "uid_ranges";
  if (is_rootless(facts)) return skipped(kName, "Ids are taken from the subordinate ones.");
  if (facts.uid_ranges_free > 0) {
    return pass(kName, std::to_string(facts.uid_ranges_free) +
                           " ranges of user ids are nobody's on this host.");
  }
  return failed(kName,
                "Every range of user ids from " + std::to_string(kServerRange.first) +
                    " up is somebody's in /etc/passwd or /etc/subuid.",
                as_root(facts, "nano /etc/subuid"));
}

}  // namespace hutch::plan
