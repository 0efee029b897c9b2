// Starts the warden: the privileged half of a running Hutch.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "warden/options.h"

namespace hutch::warden {

struct WardenConnection {
  Fd socket;  // SOCK_SEQPACKET; see protocol.h. Its end means that the warden is gone
  pid_t pid = -1;
  // Of the waived limits, those that are really not held.
  std::vector<std::string> waived;
};

// Forks the warden and returns when it is ready to make sandboxes: cgroups made and swept, image
// mounted, anchor and launcher running. The caller is root, of the host or of a user namespace, and
// single-threaded. The warden keeps the caller's standard error for its log and inherits every lock
// of the state directory; it ends, and everything it made with it, when the socket closes. Errors:
// whatever its start failed as (not_permitted, unsupported_host, setup_failed with a step).
Result<WardenConnection> start_warden(const WardenOptions& options);

}  // namespace hutch::warden
