// The host's number of a process behind a pidfd.
#pragma once

#include <sys/types.h>

#include "base/fd.h"
#include "base/result.h"

namespace hutch::warden {

// For cgroup.procs and for the ledger. Only while the pidfd is held and the process is not reaped
// can this number not have passed to somebody else. Fails as sandbox_lost when it has been reaped.
Result<pid_t> pid_of(const Fd& pidfd);

}  // namespace hutch::warden
