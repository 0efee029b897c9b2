// How a program ended, decided once and here, from what its real parent saw. Pure.
#pragma once

#include "model/limits.h"
#include "model/outcome.h"
#include "warden/protocol.h"

namespace hutch::engine {

// `ended` is a report with Tell::ended. In this order:
//   timeout    the deadline passed before the program had ended
//   cancelled  it was stopped on request
//   memory     the kernel killed for memory, unless the program came to its end with status 0
//   processes  it ended badly after it was refused a process or thread
//   disk       it ended badly with no free block or no free inode left
//   signaled, exited
model::Outcome decide_outcome(const warden::Report& ended, const model::Limits& limits,
                              std::uint32_t timeout_s);

}  // namespace hutch::engine
