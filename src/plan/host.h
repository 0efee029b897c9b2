// What this host is, as plain data, and whether Hutch can run on it. Reading (gather) is apart from
// judging (judge), so that a verdict can be had for hosts that nobody owns. `serve`, `plan` and
// `doctor` ask the same question here and so cannot disagree. docs/doctor.md describes each
// finding.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "isolation/cgroup.h"
#include "plan/id_layout.h"
#include "plan/subordinate_ids.h"

namespace hutch::plan {

// A program of the host that is called by name.
struct Tool {
  std::string path;         // empty: not there
  bool privileged = false;  // setuid root, or with a file capability
};

// Who asks: root, or somebody for whom user namespaces stand in for root.
struct UserFacts {
  bool is_root = false;            // the effective user is 0, here
  std::uint32_t uid = 0;           // the effective user
  std::string name;                // from /etc/passwd; the number where it is not there
  std::uint64_t capabilities = 0;  // the effective set, bit N for capability N
  bool no_new_privs = false;       // setuid programs give no power any more
  bool is_filtered = false;        // system calls of our own are filtered already
  std::string apparmor_label;      // empty without AppArmor
  bool in_user_namespace = false;  // not every id of the host is mapped: root is root of less
  std::uint64_t mapped_uids = 0;   // how many ids there are to give away, here
  std::uint64_t mapped_gids = 0;
  // Other hard limits, by the names of prlimit(1), for those that a program is given a value of.
  std::map<std::string, std::uint64_t> limits_max;
  std::uint64_t processes_max = 0;   // RLIMIT_NPROC, ~0 for none
  std::uint64_t open_files_max = 0;  // RLIMIT_NOFILE, the hard one

  // What newuidmap gives this user: every range of it in /etc/subuid and /etc/subgid.
  std::vector<IdRange> subordinate_uids;
  std::vector<IdRange> subordinate_gids;
  bool subordinate_ids_elsewhere = false;  // nsswitch.conf names another source for them
  std::string subordinate_ids_clash;       // who else has ids of the first range: "user bob"
  std::uint32_t subordinate_ids_free = 0;  // where a new range may begin in both files
  Tool newuidmap;
  Tool newgidmap;
};

struct HostFacts {
  std::string kernel_release;  // "6.1.0-28-amd64"
  unsigned kernel_major = 0;
  unsigned kernel_minor = 0;
  std::string machine;    // "x86_64"; empty when it cannot be read
  bool gvisor = false;    // runsc plays the kernel
  unsigned wsl = 0;       // 1 or 2 on Windows
  std::string container;  // "docker", "podman", "lxc", ...; empty on a host
  bool systemd = false;   // it is the init

  UserFacts user;

  bool user_namespaces = false;              // the kernel has them at all
  bool user_namespaces_for_all = true;       // sysctl kernel.unprivileged_userns_clone (Debian)
  bool user_namespaces_by_apparmor = false;  // AppArmor asks for a profile (Ubuntu)
  std::vector<std::string> namespaces;       // other kinds that the kernel has: "mnt", "net", ...
  // sysctl user.max_KIND_namespaces, for each kind that has one; "user" among them.
  std::map<std::string, std::uint64_t> namespaces_max;

  isolation::CgroupLayout cgroups;
  // What is known without creating a group; opening the tree may find more.
  std::vector<isolation::UnenforcedLimit> unenforced;
  bool cgroup_is_shared = false;  // v2: our group holds others' processes and hands nothing down
  // v2, as an ordinary user: what systemd hands down to all that this user runs.
  std::vector<std::string> user_service_controllers;

  bool seccomp = false;          // filters that can kill and answer errno
  unsigned landlock = 0;         // ABI version, 0: none
  bool erofs = false;            // in the kernel, or as a module that can be loaded
  bool keyrings = false;         // the kernel has keys, and we may use them
  std::string images_directory;  // where images lie; empty when that was not asked
  bool images_noexec = false;    // on a file system that programs cannot be started from
  bool selinux_enforcing = false;
  std::string core_handler;  // the program that core_pattern starts for a crash
  Tool mkfs_erofs;
  Tool fsck_erofs;
  std::vector<std::string> devices_missing;  // of the five that a sandbox has: "/dev/full"
  std::uint32_t uid_ranges_free = 0;         // ranges of user ids that nobody on this host has
  std::uint32_t uid_range_first = 0;         // where the lowest of them begins
  std::string run_directory;                 // where mounts are prepared
  std::string run_directory_fault;           // why it cannot be used

  unsigned overcommit = 0;  // vm.overcommit_memory
  std::uint64_t pid_max = 0;
  std::uint64_t threads_max = 0;
  std::uint64_t group_processes_max = 0;  // of our own control group, ~0 for none
  std::uint64_t max_map_count = 0;
  std::uint64_t inotify_instances_max = 0;
  std::uint64_t memory_bytes = 0;            // of the host, or of our own memory group if less
  std::uint64_t memory_available_bytes = 0;  // the same
  std::uint64_t swap_bytes = 0;
  std::vector<std::uint32_t> cpus;  // that we may run on, ascending
  // Directories and files of /proc that are mounted over. The kernel then refuses a fresh /proc to
  // a user namespace, because that would uncover them.
  std::vector<std::string> proc_masks;
  bool proc_readonly = false;
};

// What is asked of the host.
struct HostNeeds {
  std::uint64_t memory_bytes = 0;  // of one sandbox
  double cpus = 0;
  std::uint32_t processes = 0;
  std::uint32_t sandboxes = 1;      // that stand ready at once
  std::uint32_t sandboxes_max = 1;  // at most, with those in use and those being taken down
  std::uint32_t open_files = 0;     // of one program
  // Limits that the operator does without where the host cannot hold them: "memory", "processes",
  // "cpus".
  std::vector<std::string> waived;
};

enum class FindingVerdict { pass, caution, fail, skipped };

struct Finding {
  std::string_view name;  // "cgroups"
  FindingVerdict verdict = FindingVerdict::skipped;
  std::string meaning;  // one sentence: what was found, what follows
  std::string remedy;   // a command or an action; empty when nothing is to be done
  // What failed is that somebody may not, not that this kernel cannot.
  bool is_privilege = false;
};

// Never fails: what cannot be read stays at its default, which judge() counts against the host.
// `root_prefix` goes before every path; with one, what only a system call tells (Landlock) stays 0.
// Ask before a user namespace is entered: what is missing is then told in the user's own terms.
HostFacts gather_host_facts(const std::string& root_prefix);

// Whether programs can be started from the file system of `directory`, or of what there is of its
// path.
void look_at_images(const std::string& directory, HostFacts& facts);

// As if `user` asked, who is in /etc/passwd and not root: its subordinate ids, what systemd hands
// down to it. Its resource limits are not known and taken to be ours. Fails as not_found.
Result<HostFacts> gather_host_facts_for(const std::string& root_prefix, const std::string& user);

// Whether sandboxes are made by the power over a user namespace alone.
bool is_rootless(const HostFacts& facts);

// Pure. Always the same names in the same order.
std::vector<Finding> judge(const HostFacts& facts, const HostNeeds& needs);

// The waived limits that this host really cannot hold: what an answer has to own up to.
std::vector<std::string> limits_not_held(const HostFacts& facts, const HostNeeds& needs);

// With every failed finding and its remedy in the message; fine when none failed. not_permitted
// when what failed is a matter of privilege alone, else unsupported_host.
Status refuse_failed(const std::vector<Finding>& findings);

// "a, b and c".
std::string enumerate(const std::vector<std::string>& words);

// "PASS", "CAUTION", "FAIL", "SKIPPED".
std::string_view verdict_name(FindingVerdict verdict);

}  // namespace hutch::plan
