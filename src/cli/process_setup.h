// What a server process sets for itself before it opens anything, whatever its parent left it with.
#pragma once

#include "base/fd.h"
#include "base/result.h"

namespace hutch::cli {

// Descriptors 0 to 2 are open (on /dev/null where they were not), all others but `kept` closed, so
// nothing of the parent's reaches the warden or a sandbox; new files are not writable by others; as
// many descriptors may be open as the hard limit lets; a reader that has left is an error of the
// write and not our end. Call it first of all.
Status set_process_up(const Fd& kept);

// Descriptors 0 to 2 are open: on /dev/null where they were not, so that nothing else gets their
// numbers.
Status open_standard_descriptors();

// Asks the kernel to take this process late when the host runs out of memory. Needs root; without
// effect where that is not allowed. Children inherit it, so call it when they have been made.
void survive_memory_shortage();

}  // namespace hutch::cli
