// How `hutch run` ends: with the program's own code, as `docker run` and timeout(1) would.
#pragma once

namespace hutch::cli {

enum class RunExitCode : int {
  timeout = 124,     // the program was ended at its deadline
  failed = 125,      // Hutch itself: wrong usage, no server, a lost sandbox
  unreadable = 126,  // FILE cannot be read
  missing = 127,     // there is no FILE
};

// What a shell shows of a process that a signal ended.
inline constexpr int kSignalBase = 128;

}  // namespace hutch::cli
