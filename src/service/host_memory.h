// How much memory the host has and has left, for the admission of runs. A value, and its reading.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace hutch::service {

struct HostMemory {
  std::uint64_t total_bytes = 0;
  // What a new program can get without pushing others out, by the kernel's own estimate.
  std::uint64_t available_bytes = 0;
};

// From the text of /proc/meminfo. Fails as unsupported_host when a line that is needed is missing.
Result<HostMemory> parse_meminfo(std::string_view text);

// The host's figures now. When they cannot be read, total 0 and available 0: nothing is admitted.
HostMemory read_host_memory();

}  // namespace hutch::service
