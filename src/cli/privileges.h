// The one-way step from root to an unprivileged process, and the look afterwards whether anything
// is left. Decides nothing about when.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/result.h"

namespace hutch::cli {

// Used where there is no user of our own. It lies above the ids that distributions, systemd and
// container managers hand out, so that it meets nobody's files or processes.
inline constexpr uid_t kReservedUid = 1'900'000'000;

struct User {
  uid_t uid = 0;
  gid_t gid = 0;
  bool subordinate = false;  // an id of an ordinary user's namespace; see user_namespace.h
};

// `setting` is server.user: a name, a number, or empty for the user `hutch` or kReservedUid. A
// server that an `ordinary` user started becomes one of that user's subordinate ids, and the
// setting must be empty. Error: config, when there is no such user or it is root.
Result<User> find_server_user(const std::string& setting, bool ordinary);

// No way back: no identity, group, capability, core dump, debugger, nor a setuid program, can give
// this process power again. Takes orphans of its children as its own children. Call it
// with one thread, when everything that needs root is open; started without root, it keeps its ids
// and does the rest. Then looks whether anything is left, and fails (internal) naming it.
Status drop_privileges(const User& user);

// What of root's power this process still has, in words; nothing when it is as `user` should be.
std::optional<std::string> leftover_power(const User& user);

}  // namespace hutch::cli
