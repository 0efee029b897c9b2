#include "base/step.h"

#include <array>
#include <cstddef>

namespace hutch {
namespace {

constexpr auto kNames = std::to_array<std::string_view>({
    "none",
    "state_lock",
    "uid_range",
    "cgroup_root",
    "image_mount",
    "zone_clone",
    "zone_maps",
    "zone_root",
    "zone_devices",
    "zone_proc",
    "zone_pivot",
    "launcher_start",
    "launcher_plan",
    "launcher_answer",
    "channel_create",
    "cgroup_create",
    "cgroup_limits",
    "cgroup_attach",
    "network_create",
    "network_loopback",
    "init_clone",
    "id_maps",
    "init_session",
    "init_go",
    "cgroup_namespace",
    "identity_root",
    "root_bind",
    "scratch_mount",
    "scratch_dirs",
    "scratch_binds",
    "home_links",
    "shm_mount",
    "proc_mount",
    "proc_mask",
    "proc_readonly",
    "proc_figures",
    "pivot",
    "old_root_detach",
    "user_limits",
    "hostname",
    "work_open",
    "descriptors",
    "bounding_set",
    "identity_init",
    "capabilities",
    "no_new_privs",
    "not_dumpable",
    "init_filter",
    "init_report",
    "program_join_pid",
    "program_clone",
    "program_session",
    "program_go",
    "program_join",
    "program_directory",
    "program_descriptors",
    "program_rlimits",
    "program_affinity",
    "program_keyring",
    "program_umask",
    "program_bounding_set",
    "program_identity",
    "program_capabilities",
    "program_no_new_privs",
    "program_self_check",
    "program_filter",
    "program_exec",
    "program_ready",
    "files_in",
    "run_start",
    "run_wait",
    "files_out",
    "kill_tree",
    "cgroup_remove",
});
static_assert(kNames.size() == static_cast<std::size_t>(Step::count_));

}  // namespace

std::string_view step_name(Step step) {
  const auto index = static_cast<std::size_t>(step);
  return index < kNames.size() ? kNames[index] : "unknown";
}

}  // namespace hutch
