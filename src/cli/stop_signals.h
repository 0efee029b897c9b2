// The signals by which somebody asks a command to stop, as something to wait for beside a socket.
// Decides nothing about what stopping means.
#pragma once

#include <csignal>

#include "base/fd.h"

namespace hutch::cli {

class StopSignals {
 public:
  // From here on SIGINT, SIGTERM and SIGHUP wait to be taken instead of ending the process. Call it
  // while the process has one thread; children inherit it.
  StopSignals();
  // Restores what was. Signals that nobody took are dropped.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Readable while a signal waits.
  int fd() const { return fd_.get(); }
  // The number of the first one that waits, which is then taken; 0 when none does.
  int take() const;
  // Restores what was, for a child that has its own idea of these signals.
  void give_back() const;

 private:
  sigset_t before_{};
  Fd fd_;
};

}  // namespace hutch::cli
