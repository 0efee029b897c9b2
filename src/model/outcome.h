// How a tenant's program ended. Exactly one Outcome a run; the first cause wins. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hutch::model {

enum class Cause {
  exited,     // it ended by itself with a status
  signaled,   // a signal ended it, and none of the causes below sent that signal
  timeout,    // its deadline passed and it was killed
  memory,     // the kernel refused it memory at its limit and it was killed
  processes,  // it ended badly after the kernel refused it a process or thread at its limit
  disk,       // it ended badly with no free block or inode left
  cancelled,  // the caller left or asked for the end
  lost,       // we cannot tell: its sandbox or our privileged side died. Never an exit code
};

struct Outcome {
  Cause cause = Cause::lost;
  // How the main process itself went; meaningless for `cancelled` and `lost`.
  bool by_signal = false;
  int status = 0;                       // exit status 0..255, or the signal's number when by_signal
  std::uint64_t memory_peak_bytes = 0;  // 0: the kernel does not tell
  std::uint64_t cpu_ms = 0;             // user and system time of the whole sandbox
  // The limit that `cause` ran into: seconds, bytes, processes, or inodes. Empty for other causes.
  std::optional<std::uint64_t> limit;
  // Limits that the host did not hold and the operator did without: "memory", "processes", "cpus".
  std::vector<std::string> waived;
};

// "exited", "signaled", ...
std::string_view cause_name(Cause cause);

}  // namespace hutch::model
