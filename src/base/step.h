// The closed vocabulary of everything that making, running and ending a sandbox consists of. One
// name labels the error, the timing, the failpoint, the doctor's line and the table in the docs, so
// a failure always points at one line of one list. Owns the names; decides nothing.
#pragma once

#include <cstdint>
#include <string_view>

namespace hutch {

// The order inside each group is the order of execution. Values travel in fixed-size messages
// between processes of one build, so they may be reordered between releases.
enum class Step : std::uint16_t {
  none = 0,
  // Warden, at start.
  state_lock,
  uid_range,
  cgroup_root,
  image_mount,
  zone_clone,
  zone_maps,
  zone_root,
  zone_devices,
  zone_proc,
  zone_pivot,
  launcher_start,
  launcher_plan,
  launcher_answer,
  // Warden, for each sandbox.
  channel_create,
  cgroup_create,
  cgroup_limits,
  cgroup_attach,
  // Launcher, for each sandbox.
  network_create,
  network_loopback,
  init_clone,
  id_maps,
  // Init, inside the new namespaces.
  init_session,
  init_go,
  cgroup_namespace,
  identity_root,
  root_bind,
  scratch_mount,
  scratch_dirs,
  scratch_binds,
  home_links,
  shm_mount,
  proc_mount,
  proc_mask,
  proc_readonly,
  proc_figures,
  pivot,
  old_root_detach,
  user_limits,
  hostname,
  work_open,
  descriptors,
  bounding_set,
  identity_init,
  capabilities,
  no_new_privs,
  not_dumpable,
  init_filter,
  init_report,
  // Program and courier, cloned into a ready sandbox.
  program_join_pid,
  program_clone,
  program_session,
  program_go,
  program_join,
  program_directory,
  program_descriptors,
  program_rlimits,
  program_affinity,
  program_keyring,
  program_umask,
  program_bounding_set,
  program_identity,
  program_capabilities,
  program_no_new_privs,
  program_self_check,
  program_filter,
  program_exec,
  program_ready,
  // The run itself.
  files_in,
  run_start,
  run_wait,
  files_out,
  // Tear-down.
  kill_tree,
  cgroup_remove,
  count_,
};

// The name as written above; "unknown" for a number that no build of ours sends.
std::string_view step_name(Step step);

}  // namespace hutch
