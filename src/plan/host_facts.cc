// Where the facts of a host are read: /proc and /sys, and the few system calls that tell what no
// file does.
#include <linux/keyctl.h>
#include <linux/landlock.h>
#include <sys/klog.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <limits>

#include "base/sys.h"
#include "plan/host_read.h"
#include "plan/host_rules.h"

namespace hutch::plan {
namespace {

using isolation::CgroupVersion;
using isolation::parse_counter;

constexpr std::size_t kFileBytesMax = 1U << 20U;
constexpr std::size_t kPasswdBytesMax = 16U << 20U;
constexpr const char* kKinds[] = {"mnt", "pid", "net", "ipc", "uts", "cgroup", "user"};

// gVisor's kernel calls itself Linux 4.4.0 of this date, and newer ones add the name.
constexpr std::string_view kGvisorVersion = "#1 SMP Sun Jan 10 15:06:54 PST 2016";

bool kernel_log_names_gvisor() {
  constexpr int kReadAll = 3;
  std::array<char, 8192> log{};
  const int size = ::klogctl(kReadAll, log.data(), static_cast<int>(log.size()));
  const std::string_view text(log.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  return text.find("Starting gVisor") != std::string_view::npos;
}

bool is_gvisor(const std::string& root) {
  const std::string version = text_of(root + "/proc/version");
  if (version.find("gvisor") != std::string::npos || version.ends_with(kGvisorVersion)) return true;
  // A kernel of Linux names its builder.
  const bool is_odd = version.find('(') == std::string::npos;
  return root.empty() && is_odd && kernel_log_names_gvisor();
}

std::string read_machine(const std::string& root) {
  std::string machine = text_of(root + "/proc/sys/kernel/arch");
  utsname names{};
  if (machine.empty() && root.empty() && ::uname(&names) == 0) machine = names.machine;
  return machine;
}

unsigned read_wsl(const std::string& release) {
  std::string lower = release;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (lower.find("microsoft") == std::string::npos) return 0;
  return lower.find("wsl2") == std::string::npos && lower.starts_with("4.4") ? 1 : 2;
}

// A marker may be left in a file system that was a container's once and is booted now: the kernel's
// first namespaces, whose numbers are fixed, tell.
bool is_in_first_namespaces(const std::string& root) {
  std::error_code ignored;
  const auto shows = [&](const char* kind, const char* number) {
    return std::filesystem::read_symlink(root + "/proc/self/ns/" + kind, ignored) == number;
  };
  return shows("pid", "pid:[4026531836]") && shows("cgroup", "cgroup:[4026531835]");
}

std::string read_container(const std::string& root) {
  if (is_in_first_namespaces(root)) return {};
  if (sys::exists(root + "/.dockerenv")) return "docker";
  if (sys::exists(root + "/run/.containerenv")) return "podman";
  if (std::string told = text_of(root + "/run/systemd/container"); !told.empty()) return told;
  const std::string environment = text_of(root + "/proc/1/environ");
  for (const std::string& one : split(environment, std::string_view("\0", 1))) {
    constexpr std::string_view kKey = "container=";
    if (one.starts_with(kKey) && one.size() > kKey.size()) return one.substr(kKey.size());
  }
  const std::string groups = text_of(root + "/proc/1/cgroup");
  const std::pair<std::string_view, std::string_view> marks[] = {
      {"/docker", "docker"}, {"/libpod", "podman"}, {"/lxc", "lxc"}, {"/kubepods", "kubernetes"}};
  for (const auto& [mark, name] : marks) {
    if (groups.find(mark) != std::string::npos) return std::string(name);
  }
  return {};
}

void read_kernel(const std::string& root, HostFacts& facts) {
  facts.kernel_release = text_of(root + "/proc/sys/kernel/osrelease");
  facts.machine = read_machine(root);
  facts.gvisor = is_gvisor(root);
  facts.wsl = read_wsl(facts.kernel_release);
  facts.container = read_container(root);
  facts.systemd = sys::exists(root + "/run/systemd/system");
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

void read_namespaces(const std::string& root, HostFacts& facts) {
  const std::string sysctl = root + "/proc/sys/";
  for (const std::string kind : kKinds) {
    const bool is_there = sys::exists(root + "/proc/self/ns/" + kind);
    if (is_there && kind != "user") facts.namespaces.push_back(kind);
    if (kind == "user") facts.user_namespaces = is_there;
    const std::string limit = sysctl + "user/max_" + kind + "_namespaces";
    if (sys::exists(limit)) facts.namespaces_max[kind] = number_of(limit, 0);
  }
  facts.user_namespaces_for_all = number_of(sysctl + "kernel/unprivileged_userns_clone", 1) != 0;
  facts.user_namespaces_by_apparmor =
      number_of(sysctl + "kernel/apparmor_restrict_unprivileged_userns", 0) != 0;
}

bool may_use_keys(const std::string& root) {
  if (!root.empty()) return sys::exists(root + "/proc/sys/kernel/keys/maxkeys");
  const long id = ::syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0);
  if (id >= 0) return true;
  const int error = sys::last_errno();
  return error != ENOSYS && error != EPERM;
}

void read_switches(const std::string& root, HostFacts& facts) {
  const std::string sysctl = root + "/proc/sys/";
  const std::string actions = text_of(sysctl + "kernel/seccomp/actions_avail");
  facts.seccomp = actions.find("kill_process") != std::string::npos &&
                  actions.find("errno") != std::string::npos;
  facts.keyrings = may_use_keys(root);
  facts.selinux_enforcing = number_of(root + "/sys/fs/selinux/enforce", 0) != 0;
  if (const std::string pattern = text_of(sysctl + "kernel/core_pattern");
      pattern.starts_with('|')) {
    facts.core_handler = pattern.substr(1, pattern.find(' ') - 1);
  }
  const std::string modules = root + "/lib/modules/" + facts.kernel_release + "/modules.dep";
  facts.erofs =
      text_of(root + "/proc/filesystems").find("\terofs") != std::string::npos ||
      sys::read_file(modules, kPasswdBytesMax).value_or("").find("/erofs.ko") != std::string::npos;
  facts.mkfs_erofs = find_tool(root, "mkfs.erofs");
  facts.fsck_erofs = find_tool(root, "fsck.erofs");
}

void read_room(const std::string& root, HostFacts& facts) {
  const std::string sysctl = root + "/proc/sys/";
  facts.overcommit = static_cast<unsigned>(number_of(sysctl + "vm/overcommit_memory", 0));
  facts.pid_max = number_of(sysctl + "kernel/pid_max", 0);
  facts.threads_max = number_of(sysctl + "kernel/threads-max", 0);
  facts.max_map_count = number_of(sysctl + "vm/max_map_count", 0);
  facts.inotify_instances_max = number_of(sysctl + "fs/inotify/max_user_instances", 0);
  const std::string status = text_of(root + "/proc/self/status");
  facts.cpus = parse_list(line_of(status, "Cpus_allowed_list:"));
}

void read_run_directory(const std::string& root, HostFacts& facts) {
  if (is_rootless(facts)) return;
  facts.run_directory = "/run/hutch";
  const std::string path = root + facts.run_directory;
  struct stat info {};
  const bool is_there = ::stat(path.c_str(), &info) == 0;
  if (is_there && !S_ISDIR(info.st_mode)) {
    facts.run_directory_fault = kNoDirectory;
  } else if (::access((is_there ? path : root + "/run").c_str(), W_OK | X_OK) != 0) {
    facts.run_directory_fault = "cannot be written";
  }
}

// The five that a sandbox has; without root they are bound, because none can be made.
void read_devices(const std::string& root, HostFacts& facts) {
  const std::pair<const char*, unsigned> devices[] = {
      {"null", 3}, {"zero", 5}, {"full", 7}, {"random", 8}, {"urandom", 9}};
  for (const auto& [name, number] : devices) {
    struct stat info {};
    const std::string path = std::string("/dev/") + name;
    const bool is_it = ::stat((root + path).c_str(), &info) == 0 && S_ISCHR(info.st_mode) &&
                       info.st_rdev == makedev(1, number);
    if (!is_it) facts.devices_missing.push_back(path);
  }
}

void read_proc_mounts(const std::string& root, HostFacts& facts) {
  for (const std::string& line : split(text_of(root + "/proc/self/mountinfo"), "\n")) {
    const std::vector<std::string> words = split(line, " ");
    if (words.size() < 6) continue;
    const std::string& point = words[4];
    const std::string& options = words[5];
    if (point == "/proc") {
      facts.proc_readonly = options == "ro" || options.starts_with("ro,");
    } else if (point.starts_with("/proc/") && point != "/proc/sys/fs/binfmt_misc") {
      // What stands on a directory made to be mounted on covers nothing.
      facts.proc_masks.push_back(point);
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
}

unsigned landlock_abi() {
  const long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, std::size_t{0},
                             LANDLOCK_CREATE_RULESET_VERSION);
  return abi > 0 ? static_cast<unsigned>(abi) : 0;
}

}  // namespace

std::string text_of(const std::string& path) {
  auto text = sys::read_file(path, kPasswdBytesMax);
  if (!text) return {};
  while (!text->empty() && text->back() == '\n') text->pop_back();
  return std::move(*text);
}

std::uint64_t number_of(const std::string& path, std::uint64_t fallback) {
  const std::string text = text_of(path);
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc{} ? number : fallback;
}

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

std::vector<std::string> split(std::string_view text, std::string_view separators) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    if (end != 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::vector<std::string> fields_of(std::string_view line) {
  std::vector<std::string> fields;
  for (;;) {
    const std::size_t end = std::min(line.find(':'), line.size());
    fields.emplace_back(line.substr(0, end));
    if (end == line.size()) return fields;
    line.remove_prefix(end + 1);
  }
}

Tool find_tool(const std::string& root, const std::string& name) {
  for (const char* directory :
       {"/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/usr/local/sbin/", "/bin/", "/sbin/"}) {
    const std::string path = root + directory + name;
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    const bool is_setuid = (info.st_mode & S_ISUID) != 0;
    const bool has_capability = ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
    return {directory + name, is_setuid || has_capability};
  }
  return {};
}

HostFacts gather_host_facts(const std::string& root_prefix) {
  HostFacts facts;
  facts.user = read_user(root_prefix);
  read_kernel(root_prefix, facts);
  read_namespaces(root_prefix, facts);
  read_switches(root_prefix, facts);
  read_room(root_prefix, facts);
  read_run_directory(root_prefix, facts);
  read_proc_mounts(root_prefix, facts);
  read_devices(root_prefix, facts);
  read_memory(root_prefix, facts);
  read_cgroups(root_prefix, facts);
  bound_by_group(facts.cgroups, facts);
  read_uid_ranges(root_prefix, facts);
  if (root_prefix.empty()) facts.landlock = landlock_abi();
  return facts;
}

void look_at_images(const std::string& directory, HostFacts& facts) {
  facts.images_directory = directory;
  std::filesystem::path place = directory;
  while (!sys::exists(place.string()) && place.has_relative_path()) place = place.parent_path();
  struct statvfs file_system {};
  facts.images_noexec = ::statvfs(place.c_str(), &file_system) == 0 &&
                        (file_system.f_flag & static_cast<unsigned long>(ST_NOEXEC)) != 0;
}

Result<HostFacts> gather_host_facts_for(const std::string& root_prefix, const std::string& user) {
  UserFacts named = read_named_user(root_prefix, user);
  if (named.uid == 0) {
    return fail(ErrorCode::not_found, "there is no ordinary user \"" + user + "\" in /etc/passwd");
  }
  HostFacts facts = gather_host_facts(root_prefix);
  named.processes_max = facts.user.processes_max;
  named.open_files_max = facts.user.open_files_max;
  named.limits_max = facts.user.limits_max;
  named.apparmor_label = facts.user.apparmor_label;
  facts.user = std::move(named);
  facts.run_directory.clear();
  facts.run_directory_fault.clear();
  read_delegated_cgroups(root_prefix, facts);
  return facts;
}

}  // namespace hutch::plan
