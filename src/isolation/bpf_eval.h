// Runs a seccomp program in user space, as the kernel would, so that a filter can be judged for
// every number and architecture without installing it. For tests and `doctor`, never on a hot path.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstdint>
#include <span>

#include "base/result.h"

namespace hutch::isolation {

// The program's return value. internal when the program is one the kernel would refuse: an unknown
// instruction, a load outside seccomp_data or not aligned, a jump past the end, no return.
Result<std::uint32_t> run_filter(std::span<const sock_filter> program, const seccomp_data& data);

}  // namespace hutch::isolation
