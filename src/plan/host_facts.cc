// Where the facts of a host are read: /proc and /sys, and one system call.
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/sys.h"
#include "plan/host.h"

namespace hutch::plan {
namespace {

using isolation::CgroupVersion;
using isolation::parse_counter;

constexpr std::size_t kFileBytesMax = 1U << 20U;

std::string text_of(const std::string& path) {
  auto text = sys::read_file(path, kFileBytesMax);
  if (!text) return {};
  while (!text->empty() && text->back() == '\n') text->pop_back();
  return std::move(*text);
}

// `fallback` when the file is missing or no number ("max" in a cgroup file).
std::uint64_t number_of(const std::string& path, std::uint64_t fallback) {
  const std::string text = text_of(path);
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc{} ? number : fallback;
}

// The rest of the line that begins with `key`, blanks taken off its front.
std::string_view line_of(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.starts_with(key)) {
      line.remove_prefix(key.size());
      line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
      return line;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

void read_kernel(const std::string& root, HostFacts& facts) {
  facts.kernel_release = text_of(root + "/proc/sys/kernel/osrelease");
  const char* at = facts.kernel_release.data();
  const char* end = at + facts.kernel_release.size();
  const auto major = std::from_chars(at, end, facts.kernel_major);
  if (major.ec != std::errc{} || major.ptr == end) return;
  std::from_chars(major.ptr + 1, end, facts.kernel_minor);
}

// "0-2,5" as numbers.
std::vector<std::uint32_t> parse_list(std::string_view text) {
  constexpr std::uint32_t kNumbersMax = 8192;
  std::vector<std::uint32_t> numbers;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at != end) {
    std::uint32_t first = 0;
    auto parsed = std::from_chars(at, end, first);
    if (parsed.ec != std::errc{}) break;
    std::uint32_t last = first;
    if (parsed.ptr != end && *parsed.ptr == '-') {
      parsed = std::from_chars(parsed.ptr + 1, end, last);
      if (parsed.ec != std::errc{}) break;
    }
    if (last >= kNumbersMax) break;
    for (std::uint32_t number = first; number <= last; ++number) numbers.push_back(number);
    at = parsed.ptr;
    if (at != end && *at == ',')
      ++at;
    else
      break;
  }
  return numbers;
}

void read_self(const std::string& root, HostFacts& facts) {
  const std::string status = text_of(root + "/proc/self/status");
  // Real, effective, saved, file system: the second is what counts.
  const std::string_view ids = line_of(status, "Uid:");
  const std::size_t tab = ids.find('\t');
  facts.is_root = tab != std::string_view::npos && ids.substr(tab + 1).starts_with("0\t");
  const std::string_view caps = line_of(status, "CapEff:");
  std::from_chars(caps.data(), caps.data() + caps.size(), facts.capabilities, 16);
  facts.cpus = parse_list(line_of(status, "Cpus_allowed_list:"));
}

void read_switches(const std::string& root, HostFacts& facts) {
  const std::string sysctl = root + "/proc/sys/";
  facts.user_namespaces = sys::exists(root + "/proc/self/ns/user");
  facts.user_namespaces_max = number_of(sysctl + "user/max_user_namespaces", 0);
  facts.user_namespaces_for_all = number_of(sysctl + "kernel/unprivileged_userns_clone", 1) != 0;
  facts.user_namespaces_by_apparmor =
      number_of(sysctl + "kernel/apparmor_restrict_unprivileged_userns", 0) != 0;
  const std::string actions = text_of(sysctl + "kernel/seccomp/actions_avail");
  facts.seccomp = actions.find("kill_process") != std::string::npos &&
                  actions.find("errno") != std::string::npos;
  facts.overcommit = static_cast<unsigned>(number_of(sysctl + "vm/overcommit_memory", 0));
  facts.pid_max = number_of(sysctl + "kernel/pid_max", 0);
  const std::string modules = root + "/lib/modules/" + facts.kernel_release + "/modules.dep";
  facts.erofs =
      text_of(root + "/proc/filesystems").find("\terofs") != std::string::npos ||
      sys::read_file(modules, kFileBytesMax).value_or("").find("/erofs.ko") != std::string::npos;
}

void read_proc_masks(const std::string& root, HostFacts& facts) {
  const std::string mounts = text_of(root + "/proc/self/mountinfo");
  std::string_view rest = mounts;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    // The fifth word is the mount point.
    std::size_t start = 0;
    for (int word = 0; word < 4 && start != std::string_view::npos; ++word) {
      start = line.find(' ', start);
      if (start != std::string_view::npos) ++start;
    }
    if (start == std::string_view::npos) continue;
    const std::string_view point = line.substr(start, line.find(' ', start) - start);
    // What stands on a directory made to be mounted on covers nothing.
    if (point.starts_with("/proc/") && point != "/proc/sys/fs/binfmt_misc") {
      facts.proc_masks.emplace_back(point);
    }
  }
}

// What the group of our own allows: the limit, and what of it is left. Cached files count as used,
// but give way when memory is asked for.
void bound_by_group(const isolation::CgroupLayout& cgroups, HostFacts& facts) {
  constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t limit = kNone;
  std::uint64_t used = 0;
  std::string stat;
  if (cgroups.version == CgroupVersion::v1 && cgroups.v1.contains("memory")) {
    const std::string& own = cgroups.v1.at("memory");
    stat = text_of(own + "/memory.stat");
    limit = parse_counter(stat, "hierarchical_memory_limit");
    used = number_of(own + "/memory.usage_in_bytes", 0);
    used -= std::min(used, parse_counter(stat, "total_inactive_file"));
  } else if (cgroups.version == CgroupVersion::v2) {
    limit = number_of(cgroups.v2 + "/memory.max", kNone);
    used = number_of(cgroups.v2 + "/memory.current", 0);
    used -= std::min(used, parse_counter(text_of(cgroups.v2 + "/memory.stat"), "inactive_file"));
  }
  if (limit == 0 || limit >= facts.memory_bytes) return;
  facts.memory_bytes = limit;
  facts.memory_available_bytes =
      std::min(facts.memory_available_bytes, limit - std::min(limit, used));
}

void read_memory(const std::string& root, HostFacts& facts) {
  const std::string text = text_of(root + "/proc/meminfo");
  facts.memory_bytes = parse_counter(text, "MemTotal:") * 1024;
  facts.memory_available_bytes = parse_counter(text, "MemAvailable:") * 1024;
  facts.swap_bytes = parse_counter(text, "SwapTotal:") * 1024;
  bound_by_group(facts.cgroups, facts);
}

struct Need {
  const char* limit;
  const char* controller;
};

constexpr Need kNeeds[] = {{"memory", "memory"}, {"processes", "pids"}, {"cpus", "cpu"}};

void read_cgroups_v1(HostFacts& facts) {
  for (const Need& need : kNeeds) {
    const auto own = facts.cgroups.v1.find(need.controller);
    if (own == facts.cgroups.v1.end()) {
      facts.unenforced.push_back({need.limit, std::string("the controller ") + need.controller +
                                                  " is not mounted, or not for our own group"});
    } else if (::access(own->second.c_str(), W_OK) != 0) {
      facts.unenforced.push_back({need.limit, own->second + " cannot be written"});
    } else if (own->first == "memory" && facts.swap_bytes > 0 &&
               !sys::exists(own->second + "/memory.memsw.limit_in_bytes")) {
      facts.unenforced.push_back({need.limit, "there is swap, and the kernel does not count it"});
    }
  }
}

void read_cgroups_v2(HostFacts& facts) {
  const auto& handed_down = facts.cgroups.v2_controllers;
  for (const Need& need : kNeeds) {
    if (std::ranges::find(handed_down, need.controller) == handed_down.end()) {
      facts.unenforced.push_back({need.limit, std::string("the controller ") + need.controller +
                                                  " is not handed down to " + facts.cgroups.v2});
    } else if (::access(facts.cgroups.v2.c_str(), W_OK) != 0) {
      facts.unenforced.push_back({need.limit, facts.cgroups.v2 + " cannot be written"});
    }
  }
}

void read_cgroups(const std::string& root, HostFacts& facts) {
  isolation::CgroupKernel kernel;
  auto layout = isolation::detect_cgroups(kernel, root);
  // Unreadable counts as absent: every limit is then named as one that does not hold.
  if (layout) facts.cgroups = std::move(*layout);
}

void read_unenforced(HostFacts& facts) {
  switch (facts.cgroups.version) {
    case CgroupVersion::v1: read_cgroups_v1(facts); return;
    case CgroupVersion::v2: read_cgroups_v2(facts); return;
    case CgroupVersion::none: break;
  }
  for (const Need& need : kNeeds) {
    facts.unenforced.push_back({need.limit, "no control groups are mounted"});
  }
}

unsigned landlock_abi() {
  const long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, std::size_t{0},
                             LANDLOCK_CREATE_RULESET_VERSION);
  return abi > 0 ? static_cast<unsigned>(abi) : 0;
}

}  // namespace

HostFacts gather_host_facts(const std::string& root_prefix) {
  HostFacts facts;
  read_kernel(root_prefix, facts);
  read_self(root_prefix, facts);
  read_switches(root_prefix, facts);
  read_proc_masks(root_prefix, facts);
  read_cgroups(root_prefix, facts);
  read_memory(root_prefix, facts);
  read_unenforced(facts);
  if (root_prefix.empty()) facts.landlock = landlock_abi();
  return facts;
}

}  // namespace hutch::plan
