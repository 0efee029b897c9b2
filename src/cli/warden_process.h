// The warden as a child of the server: tells the log how it ended, and waits for it at the end.
// Also buries what the server adopts when a warden was killed. Never signals anybody.
#pragma once

#include <sys/types.h>

#include "base/log.h"

namespace hutch::cli {

class WardenProcess {
 public:
  WardenProcess(pid_t pid, Log& log) : pid_(pid), log_(log) {}
  WardenProcess(const WardenProcess&) = delete;
  WardenProcess& operator=(const WardenProcess&) = delete;
  // Waits, 10 s at most, until the warden has taken everything down and ended; its socket must be
  // closed by then, since that is what tells it to. When it was killed, waits for what it has left
  // behind: those processes end by themselves, but their namespaces stay until somebody buries
  // them.
  ~WardenProcess();

  pid_t pid() const { return pid_; }
  // Collects every child that has ended.
  void reap();

 private:
  void note(pid_t child, int status);

  pid_t pid_;
  Log& log_;
  bool ended_ = false;
};

}  // namespace hutch::cli
