// What this host is, as plain data, and whether Hutch can run on it. Reading (gather) is apart from
// judging (judge), so that a verdict can be had for hosts that nobody owns. `serve`, `plan` and
// `doctor` ask the same question here and so cannot disagree.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "isolation/cgroup.h"

namespace hutch::plan {

struct HostFacts {
  std::string kernel_release;  // "6.1.0-28-amd64"
  unsigned kernel_major = 0;
  unsigned kernel_minor = 0;

  bool is_root = false;
  std::uint64_t capabilities = 0;  // the effective set, bit N for capability N

  bool user_namespaces = false;              // the kernel has them at all
  std::uint64_t user_namespaces_max = 0;     // sysctl user.max_user_namespaces
  bool user_namespaces_for_all = true;       // sysctl kernel.unprivileged_userns_clone (Debian)
  bool user_namespaces_by_apparmor = false;  // AppArmor asks for a profile (Ubuntu)

  isolation::CgroupLayout cgroups;
  // What is known without creating a group; opening the tree may find more.
  std::vector<isolation::UnenforcedLimit> unenforced;

  bool seccomp = false;   // filters that can kill and answer errno
  unsigned landlock = 0;  // ABI version, 0: none
  bool erofs = false;     // in the kernel, or as a module that can be loaded

  unsigned overcommit = 0;  // vm.overcommit_memory
  std::uint64_t pid_max = 0;
  std::uint64_t memory_bytes = 0;            // of the host, or of our own memory group if less
  std::uint64_t memory_available_bytes = 0;  // the same
  std::uint64_t swap_bytes = 0;
  std::vector<std::uint32_t> cpus;  // that we may run on, ascending
  // Directories and files of /proc that are mounted over. The kernel then refuses a fresh /proc to
  // a user namespace, because that would uncover them.
  std::vector<std::string> proc_masks;
};

// What is asked of the host.
struct HostNeeds {
  std::uint64_t memory_bytes = 0;  // of one sandbox
  double cpus = 0;
  std::uint32_t processes = 0;
  std::uint32_t sandboxes = 1;  // that stand ready at once
};

enum class FindingVerdict { pass, caution, fail, skipped };

struct Finding {
  std::string_view name;  // "cgroups"
  FindingVerdict verdict = FindingVerdict::skipped;
  std::string meaning;  // one sentence: what was found, what follows
  std::string remedy;   // a command or an action; empty when nothing is to be done
};

// Never fails: what cannot be read stays at its default, which judge() counts against the host.
// `root_prefix` goes before every path; with one, what only a system call tells (Landlock) stays 0.
HostFacts gather_host_facts(const std::string& root_prefix);

// Pure. Always the same names in the same order.
std::vector<Finding> judge(const HostFacts& facts, const HostNeeds& needs);

// unsupported_host (or not_permitted, when privilege is all that is missing), with every failed
// finding and its remedy in the message; fine when none failed.
Status refuse_failed(const std::vector<Finding>& findings);

// "PASS", "CAUTION", "FAIL", "SKIPPED".
std::string_view verdict_name(FindingVerdict verdict);

}  // namespace hutch::plan
