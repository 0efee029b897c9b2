// One step of making a sandbox, as plain data: a name and one system call or two. A plan is a list
// of these; nothing that carries them out decides anything. Values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/step.h"

namespace hutch::isolation {

// What carries an action out; a, b, c, s, t are the fields of Action.
enum class Op : std::uint16_t {
  session = 1,        // setsid
  await_go,           // read one byte from the report socket; the warden attaches cgroups before it
  unshare,            // unshare(a)
  set_identity,       // setresgid(a), setresuid(b), with no supplementary group left
  bind,               // mount --bind s t; a = 1: recursive
  bind_optional,      // the same, skipped when t does not exist
  bind_readonly,      // bind t over itself, then make it read-only, nosuid, nodev, noexec; optional
  remount_readonly,   // make the mount at t read-only; its other flags stay
  mount_tmpfs,        // tmpfs at t, options s, flags a
  mount_proc,         // a new proc at t, options s
  make_private,       // mount propagation of / off, recursively
  make_directory,     // mkdir t, mode a, then owned by uid b, gid c
  make_symlink,       // symlink t -> s
  enter_root,         // chdir t, pivot_root there
  detach_old_root,    // umount2(".", MNT_DETACH), chdir /
  set_hostname,       // sethostname(s)
  write_control,      // write s into the existing file t
  change_directory,   // chdir t
  open_directory,     // open t and keep it as the descriptor that the report carries
  place_descriptors,  // descriptors to their final numbers; a = number of the first to close
  set_rlimit,         // resource a, soft b, hard c
  set_affinity,       // the processors of this slot
  join_session_keyring,  // keyctl(JOIN_SESSION_KEYRING): an empty keyring of its own
  set_umask,             // umask(a)
  drop_bounding_set,     // every capability out of the bounding set, for good
  drop_capabilities,     // effective, permitted, inheritable, ambient: none
  no_new_privs,          // PR_SET_NO_NEW_PRIVS, for good
  set_dumpable,          // PR_SET_DUMPABLE a
  join_namespaces,       // setns to all namespaces of the sandbox's init but the pid namespace
  kill_others,           // SIGKILL to everybody in the pid namespace but init, until nobody is left
  self_check,            // identity a, no capability, no_new_privs, no descriptor from b on
  install_filter,        // seccomp filter of kind a (FilterKind), for good
  execute,               // execve s; argv and envp are the vectors of the script
};

enum class FilterKind : std::int64_t { init = 0, program = 1, courier = 2 };

struct Action {
  Step step = Step::none;
  Op op{};
  std::int64_t a = 0;
  std::int64_t b = 0;
  std::int64_t c = 0;
  std::string s;
  std::string t;
};

// "mount_tmpfs" and so on, for plan JSON.
const char* op_name(Op op);

// The flat form that crosses to the processes which carry the list out: readable there without
// allocation. Layout: RawHeader, then s and t with their NULs, padded to 8 bytes.
std::string encode_actions(const std::vector<Action>& actions);

}  // namespace hutch::isolation
