// The single rules that judge() is made of, and the four ways to say a verdict. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "plan/host.h"

namespace hutch::plan {

Finding pass(std::string_view name, std::string meaning);
Finding caution(std::string_view name, std::string meaning, std::string remedy);
Finding failed(std::string_view name, std::string meaning, std::string remedy);
// A failure that root, or a word of root's, would take away.
Finding forbidden(std::string_view name, std::string meaning, std::string remedy);
Finding skipped(std::string_view name, std::string meaning);

// HostFacts::run_directory_fault, when something else is in its place.
inline constexpr std::string_view kNoDirectory = "is no directory";

bool has_capability(const HostFacts& facts, unsigned capability);
// A command for root, as whoever asks has to type it.
std::string as_root(const HostFacts& facts, std::string_view command);
// The same for a kernel setting: "sysctl -w kernel.pid_max=4194304".
std::string set_sysctl(const HostFacts& facts, std::string_view setting, std::uint64_t value);

// A resource limit that a program is given. Nobody inside can set more than the hard limit outside.
struct ResourceNeed {
  int resource;
  const char* name;   // as prlimit(1) has it
  const char* label;  // as /proc/self/limits has it
  std::uint64_t least;
};
std::span<const ResourceNeed> resource_needs();

// host_rules_machine.cc: what the machine and its kernel are.
Finding judge_kernel(const HostFacts& facts);
Finding judge_machine(const HostFacts& facts);
Finding judge_container(const HostFacts& facts);
Finding judge_proc(const HostFacts& facts);
Finding judge_seccomp(const HostFacts& facts);
Finding judge_keyrings(const HostFacts& facts);
Finding judge_images(const HostFacts& facts);
Finding judge_erofs(const HostFacts& facts);
Finding judge_image_tools(const HostFacts& facts);
Finding judge_landlock(const HostFacts& facts);
Finding judge_selinux(const HostFacts& facts);
Finding judge_core_dumps(const HostFacts& facts);
Finding judge_devices(const HostFacts& facts);
Finding judge_run_directory(const HostFacts& facts);

// host_rules_privilege.cc: who may do it.
Finding judge_privilege(const HostFacts& facts);
Finding judge_user_namespaces(const HostFacts& facts);
Finding judge_namespaces(const HostFacts& facts);
Finding judge_namespace_limits(const HostFacts& facts, const HostNeeds& needs);
Finding judge_subordinate_ids(const HostFacts& facts);
Finding judge_id_map_tools(const HostFacts& facts);
Finding judge_uid_ranges(const HostFacts& facts);

// host_rules_cgroups.cc: whether the limits hold.
Finding judge_cgroups(const HostFacts& facts, const HostNeeds& needs);
Finding judge_waived(const HostFacts& facts, const HostNeeds& needs);
Finding judge_swap(const HostFacts& facts);

// host_rules_room.cc: whether there is enough of it.
Finding judge_overcommit(const HostFacts& facts);
Finding judge_pid_max(const HostFacts& facts, const HostNeeds& needs);
Finding judge_process_limit(const HostFacts& facts, const HostNeeds& needs);
Finding judge_open_files(const HostFacts& facts, const HostNeeds& needs);
Finding judge_resource_limits(const HostFacts& facts);
Finding judge_inotify(const HostFacts& facts, const HostNeeds& needs);
Finding judge_map_count(const HostFacts& facts);
Finding judge_memory(const HostFacts& facts, const HostNeeds& needs);
Finding judge_cpus(const HostFacts& facts, const HostNeeds& needs);
Finding judge_memory_killer(const HostFacts& facts);

}  // namespace hutch::plan
