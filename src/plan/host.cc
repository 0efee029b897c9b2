#include "plan/host.h"

#include <linux/capability.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/units.h"

namespace hutch::plan {
namespace {

using isolation::CgroupVersion;

// The newest call that a sandbox is made with: mount_setattr, which makes a whole tree read-only.
constexpr unsigned kKernelMajorMin = 5;
constexpr unsigned kKernelMinorMin = 12;

struct Capability {
  unsigned bit;
  const char* name;
};

// What the warden does with its privilege.
constexpr std::array<Capability, 7> kCapabilities{{
    {CAP_SYS_ADMIN, "CAP_SYS_ADMIN"},        // mounts, namespaces
    {CAP_SETUID, "CAP_SETUID"},              // the map of users
    {CAP_SETGID, "CAP_SETGID"},              // the map of groups
    {CAP_CHOWN, "CAP_CHOWN"},                // files for a sandbox's user
    {CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"},  // the state directory, groups of others
    {CAP_KILL, "CAP_KILL"},                  // ending programs of another user
    {CAP_SETPCAP, "CAP_SETPCAP"},            // taking capabilities away for good
}};

bool has(const HostFacts& facts, unsigned capability) {
  return (facts.capabilities >> capability & 1U) != 0;
}

std::string mebibytes(std::uint64_t bytes) { return std::to_string(bytes / 1_MiB) + " MiB"; }

Finding pass(std::string_view name, std::string meaning) {
  return {name, FindingVerdict::pass, std::move(meaning), {}};
}

Finding caution(std::string_view name, std::string meaning, std::string remedy) {
  return {name, FindingVerdict::caution, std::move(meaning), std::move(remedy)};
}

Finding failed(std::string_view name, std::string meaning, std::string remedy) {
  return {name, FindingVerdict::fail, std::move(meaning), std::move(remedy)};
}

Finding skipped(std::string_view name, std::string meaning) {
  return {name, FindingVerdict::skipped, std::move(meaning), {}};
}

Finding judge_kernel(const HostFacts& facts) {
  constexpr std::string_view kName = "kernel";
  const bool enough =
      facts.kernel_major > kKernelMajorMin ||
      (facts.kernel_major == kKernelMajorMin && facts.kernel_minor >= kKernelMinorMin);
  if (enough) return pass(kName, "Linux " + facts.kernel_release + " has every call that is used.");
  const std::string release = facts.kernel_release.empty() ? "unknown" : facts.kernel_release;
  return failed(kName, "Linux " + release + " is older than 5.12.",
                "Boot a kernel of 5.12 or newer (Debian 12 has 6.1).");
}

Finding judge_privilege(const HostFacts& facts) {
  constexpr std::string_view kName = "privilege";
  if (!facts.is_root) {
    return failed(kName, "Sandboxes are made by root here, and this is another user.",
                  "sudo hutch serve ...");
  }
  std::string missing;
  for (const Capability& capability : kCapabilities) {
    if (has(facts, capability.bit)) continue;
    missing += (missing.empty() ? "" : ", ") + std::string(capability.name);
  }
  if (missing.empty()) return pass(kName, "Root, with every capability that is used.");
  return failed(kName, "Root without " + missing + ", as in a container.",
                "Run on the host itself, or start the container with --privileged.");
}

Finding judge_user_namespaces(const HostFacts& facts) {
  constexpr std::string_view kName = "user_namespaces";
  if (!facts.user_namespaces) {
    return failed(kName, "The kernel was built without user namespaces.",
                  "Boot a kernel with CONFIG_USER_NS=y.");
  }
  if (facts.user_namespaces_max == 0) {
    return failed(kName, "User namespaces are switched off.",
                  "sysctl -w user.max_user_namespaces=15000");
  }
  // Root needs neither of the two; only a server of an ordinary user would.
  if (!facts.is_root && !facts.user_namespaces_for_all) {
    return failed(kName, "User namespaces are for root only.",
                  "sysctl -w kernel.unprivileged_userns_clone=1");
  }
  if (!facts.is_root && facts.user_namespaces_by_apparmor) {
    return failed(kName, "AppArmor lets only programs with a profile make user namespaces.",
                  "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0");
  }
  return pass(kName, "User namespaces can be made.");
}

Finding judge_cgroups(const HostFacts& facts) {
  constexpr std::string_view kName = "cgroups";
  const bool v2 = facts.cgroups.version == CgroupVersion::v2;
  if (facts.unenforced.empty() && facts.cgroups.version != CgroupVersion::none) {
    return pass(kName, "Control groups " + layout_text(facts.cgroups) +
                           " hold memory, processes and cpus.");
  }
  std::string text;
  for (const auto& limit : facts.unenforced) {
    text += (text.empty() ? "No limit can be held for " : "; nor for ") + limit.name + ": " +
            limit.reason;
  }
  if (text.empty()) text = "No control groups are mounted";
  return failed(kName, text + ".",
                v2 ? "systemd-run --scope -p Delegate=yes hutch serve ..."
                   : "Mount the missing controllers below /sys/fs/cgroup, or boot with "
                     "systemd.unified_cgroup_hierarchy=1.");
}

Finding judge_seccomp(const HostFacts& facts) {
  constexpr std::string_view kName = "seccomp";
  if (facts.seccomp) return pass(kName, "System calls can be filtered.");
  return failed(kName, "The kernel cannot filter system calls.",
                "Boot a kernel with CONFIG_SECCOMP_FILTER=y.");
}

Finding judge_proc(const HostFacts& facts) {
  constexpr std::string_view kName = "proc";
  if (facts.proc_masks.empty()) return pass(kName, "/proc is fully visible.");
  return failed(kName,
                "Parts of /proc are covered (" + facts.proc_masks.front() +
                    (facts.proc_masks.size() > 1 ? " and others" : "") +
                    "), so the kernel refuses a fresh /proc to sandboxes.",
                "Run on the host itself, or start the container with "
                "--security-opt systempaths=unconfined.");
}

Finding judge_erofs(const HostFacts& facts) {
  constexpr std::string_view kName = "erofs";
  if (facts.erofs) return pass(kName, "Images can be mounted as one read-only file.");
  return caution(kName, "The kernel has no erofs: images are used as plain directories.",
                 "modprobe erofs");
}

Finding judge_landlock(const HostFacts& facts) {
  constexpr std::string_view kName = "landlock";
  if (facts.landlock == 0) return skipped(kName, "No Landlock; nothing here depends on it.");
  return pass(kName, "Programs can shut themselves in with Landlock, ABI " +
                         std::to_string(facts.landlock) + ".");
}

Finding judge_overcommit(const HostFacts& facts) {
  constexpr std::string_view kName = "overcommit";
  if (facts.overcommit != 2) return pass(kName, "Memory is counted when it is touched.");
  return caution(kName,
                 "vm.overcommit_memory is 2: memory is counted when it is asked for, so sandboxes "
                 "are refused long before memory is used.",
                 "sysctl -w vm.overcommit_memory=0");
}

Finding judge_pid_max(const HostFacts& facts, const HostNeeds& needs) {
  constexpr std::string_view kName = "pid_max";
  // What the host itself runs, beside the sandboxes.
  constexpr std::uint64_t kReserve = 2048;
  const std::uint64_t wanted = std::uint64_t{needs.sandboxes} * needs.processes + kReserve;
  const std::string numbers =
      std::to_string(facts.pid_max) + " process numbers, up to " + std::to_string(wanted) + " used";
  if (facts.pid_max >= wanted) return pass(kName, numbers + ".");
  return caution(kName, numbers + ": full sandboxes could keep the host from starting processes.",
                 "sysctl -w kernel.pid_max=4194304");
}

Finding judge_memory(const HostFacts& facts, const HostNeeds& needs) {
  constexpr std::string_view kName = "memory";
  const std::uint64_t wanted = needs.memory_bytes * needs.sandboxes;
  if (facts.memory_bytes < needs.memory_bytes) {
    return failed(kName,
                  mebibytes(facts.memory_bytes) + " in all, and one sandbox may use " +
                      mebibytes(needs.memory_bytes) + ".",
                  "Lower limits.memory_bytes.");
  }
  const std::string numbers = mebibytes(facts.memory_available_bytes) + " available, " +
                              std::to_string(needs.sandboxes) + " sandboxes may use " +
                              mebibytes(wanted);
  if (facts.memory_available_bytes >= wanted) return pass(kName, numbers + ".");
  return caution(kName, numbers + ": with all of them full, runs are refused.",
                 "Lower limits.memory_bytes or pool.target.");
}

Finding judge_cpus(const HostFacts& facts, const HostNeeds& needs) {
  constexpr std::string_view kName = "cpus";
  const std::size_t count = facts.cpus.size();
  if (count == 0) {
    return failed(kName, "It cannot be read which processors may be used.",
                  "Mount /proc: mount -t proc proc /proc");
  }
  std::array<char, 32> wanted{};
  std::snprintf(wanted.data(), wanted.size(), "%g", needs.cpus);
  const std::string numbers = std::to_string(count) + (count == 1 ? " processor" : " processors") +
                              ", " + wanted.data() + " for one sandbox";
  if (static_cast<double>(count) >= needs.cpus) return pass(kName, numbers + ".");
  return caution(kName, numbers + ": a sandbox gets what there is.", "Lower limits.cpus.");
}

Finding judge_memory_killer(const HostFacts& facts) {
  constexpr std::string_view kName = "memory_killer";
  if (has(facts, CAP_SYS_RESOURCE)) {
    return pass(kName, "When the host runs out of memory, the server is the last to be killed.");
  }
  return caution(kName,
                 "Without CAP_SYS_RESOURCE the server cannot protect itself from the kernel's "
                 "out-of-memory killer.",
                 "Leave the host some memory: lower limits.memory_bytes or pool.target.");
}

}  // namespace

std::vector<Finding> judge(const HostFacts& facts, const HostNeeds& needs) {
  return {
      judge_kernel(facts),         judge_privilege(facts),     judge_user_namespaces(facts),
      judge_cgroups(facts),        judge_seccomp(facts),       judge_proc(facts),
      judge_erofs(facts),          judge_landlock(facts),      judge_overcommit(facts),
      judge_pid_max(facts, needs), judge_memory(facts, needs), judge_cpus(facts, needs),
      judge_memory_killer(facts),
  };
}

Status refuse_failed(const std::vector<Finding>& findings) {
  std::string text;
  bool only_privilege = true;
  for (const Finding& finding : findings) {
    if (finding.verdict != FindingVerdict::fail) continue;
    only_privilege = only_privilege && finding.name == "privilege";
    text += (text.empty() ? "" : " ") + finding.meaning + " Remedy: " + finding.remedy;
  }
  if (text.empty()) return {};
  return fail(only_privilege ? ErrorCode::not_permitted : ErrorCode::unsupported_host,
              std::move(text));
}

std::string_view verdict_name(FindingVerdict verdict) {
  switch (verdict) {
    case FindingVerdict::pass: return "PASS";
    case FindingVerdict::caution: return "CAUTION";
    case FindingVerdict::fail: return "FAIL";
    case FindingVerdict::skipped: return "SKIPPED";
  }
  return "SKIPPED";
}

}  // namespace hutch::plan
