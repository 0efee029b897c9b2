// What is read about the user who asks: identity, limits, ids to give away, and the tools for that.
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "plan/host_read.h"
#include "plan/host_rules.h"
#include "plan/id_layout.h"
#include "plan/id_map.h"

namespace hutch::plan {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

std::uint64_t to_number(std::string_view text, std::uint64_t fallback) {
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc{} ? number : fallback;
}

// A line of /proc/self/limits: "Max open files            1024                 4096        files".
std::uint64_t resource_limit(std::string_view text, std::string_view name, std::size_t column) {
  const std::vector<std::string> words = split(line_of(text, name), " ");
  return words.size() > column ? to_number(words[column], kUnlimited) : 0;
}

std::uint64_t mapped_ids(const std::vector<IdMapping>& map) {
  std::uint64_t count = 0;
  for (const IdMapping& line : map) count += line.count;
  return count;
}

// The name of `uid`, by the file first: a made-up host has nothing else.
std::string name_of(const std::string& root, std::uint32_t uid) {
  for (const std::string& line : split(text_of(root + "/etc/passwd"), "\n")) {
    const std::vector<std::string> fields = fields_of(line);
    if (fields.size() > 2 && fields[2] == std::to_string(uid)) return fields[0];
  }
  if (root.empty()) {
    if (const passwd* entry = ::getpwuid(uid); entry != nullptr) return entry->pw_name;
  }
  return std::to_string(uid);
}

void read_subordinate_ids(const std::string& root, UserFacts& user) {
  const std::string uids = text_of(root + "/etc/subuid");
  const std::string gids = text_of(root + "/etc/subgid");
  user.subordinate_uids = parse_subordinate_ids(uids, user.name, user.uid);
  user.subordinate_gids = parse_subordinate_ids(gids, user.name, user.uid);
  user.subordinate_ids_free = find_free_start({uids, gids}, kSubordinateIds);
  const std::string services = text_of(root + "/etc/nsswitch.conf");
  const std::string_view source = line_of(services, "subid:");
  user.subordinate_ids_elsewhere = !source.empty() && source != "files";
  const std::string passwd = text_of(root + "/etc/passwd");
  for (const IdRange& range : user.subordinate_uids) {
    if (user.subordinate_ids_clash.empty()) {
      user.subordinate_ids_clash = find_clash(range, user.name, passwd, uids);
    }
  }
  user.newuidmap = find_tool(root, "newuidmap");
  user.newgidmap = find_tool(root, "newgidmap");
}

}  // namespace

UserFacts read_user(const std::string& root) {
  UserFacts user;
  const std::string status = text_of(root + "/proc/self/status");
  // Real, effective, saved, file system: the second is what counts.
  const std::vector<std::string> ids = split(line_of(status, "Uid:"), "\t \n");
  if (ids.size() > 1) user.uid = static_cast<std::uint32_t>(to_number(ids[1], 0));
  user.is_root = ids.size() > 1 && ids[1] == "0";
  user.name = name_of(root, user.uid);
  const std::string_view caps = line_of(status, "CapEff:");
  std::from_chars(caps.data(), caps.data() + caps.size(), user.capabilities, 16);
  user.no_new_privs = line_of(status, "NoNewPrivs:") == "1";
  user.is_filtered = line_of(status, "Seccomp:") == "2";
  user.apparmor_label = text_of(root + "/proc/self/attr/apparmor/current");
  const auto uids = parse_id_map(text_of(root + "/proc/self/uid_map"));
  const auto gids = parse_id_map(text_of(root + "/proc/self/gid_map"));
  user.mapped_uids = mapped_ids(uids);
  user.mapped_gids = mapped_ids(gids);
  user.in_user_namespace = !uids.empty() && !maps_every_id(uids) && !maps_every_id(gids);
  const std::string limits = text_of(root + "/proc/self/limits");
  user.processes_max = resource_limit(limits, "Max processes", 0);
  user.open_files_max = resource_limit(limits, "Max open files", 1);
  for (const ResourceNeed& need : resource_needs()) {
    user.limits_max[need.name] = resource_limit(limits, need.label, 1);
  }
  read_subordinate_ids(root, user);
  return user;
}

UserFacts read_named_user(const std::string& root, const std::string& name) {
  UserFacts user;
  user.name = name;
  for (const std::string& line : split(text_of(root + "/etc/passwd"), "\n")) {
    const std::vector<std::string> fields = fields_of(line);
    if (fields.size() < 3 || fields[0] != name) continue;
    user.uid = static_cast<std::uint32_t>(to_number(fields[2], 0));
  }
  read_subordinate_ids(root, user);
  return user;
}

void read_uid_ranges(const std::string& root, HostFacts& facts) {
  const std::vector<IdRange> used =
      ids_in_use(text_of(root + "/etc/passwd"), text_of(root + "/etc/subuid"));
  for (std::uint32_t number = 0; number < kServerRanges; ++number) {
    const IdRange range = server_range(number);
    const auto is_in = [&range](const IdRange& one) { return overlap(range, one); };
    if (std::ranges::any_of(used, is_in)) continue;
    if (facts.uid_ranges_free++ == 0) facts.uid_range_first = range.first;
  }
}

}  // namespace hutch::plan
