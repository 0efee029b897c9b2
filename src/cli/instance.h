// What the server of a state directory has on this host: read from the file that its warden leaves
// there, and counted anew from /proc and the cgroup file systems, so that leftovers show. Reads
// only.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hutch::cli {

// `<state-dir>/instance.json`. Ids are 0 where the file does not name them.
struct Instance {
  std::vector<std::string> cgroup_prefixes;  // absolute; every cgroup of ours starts with one
  uid_t uid_first = 0;                       // sandboxes live in these user ids, and only they
  uid_t uid_count = 0;
  uid_t server_uid = 0;
  pid_t server_pid = 0;
  pid_t warden_pid = 0;
  pid_t launcher_pid = 0;
  pid_t anchor_pid = 0;
};

// 8 hexadecimal digits that stay the same for one state directory: what this host knows it by.
std::string instance_name(const std::string& state_dir);

// What every cgroup of that state directory's server lies below, as the last part of a path.
std::string cgroup_prefix(const std::string& state_dir);

Result<Instance> parse_instance(std::string_view text);

// not_found where no server has run in that directory.
Result<Instance> read_instance(const std::string& state_dir);

struct Holdings {
  std::vector<pid_t> processes;                 // every one whose user id lies in the range
  std::vector<std::string> network_namespaces;  // theirs, each once, as "net:[4026532001]"
  std::vector<std::string> cgroups;             // directories, the ones inside others included
};

// `proc` is "/proc". Processes that end while they are counted are left out.
Holdings count_holdings(const Instance& instance, const std::string& proc);

// Whether a process of that number lives. Numbers are reused: true is a hint, false is certain.
bool is_running(pid_t pid);

}  // namespace hutch::cli
