// One server's hold on its state directory: the lock, and the pid files beside it. Never touches
// images. The lock is what decides; pid files only tell people and scripts whom to send a signal.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace hutch::cli {

class StateLock {
 public:
  // Creates the directory (0755) where there is none and takes its lock. A lock whose taker is dead
  // but whose warden is still tidying up is waited for, 10 s at most. Error: always state_in_use,
  // for a directory that is in use (naming the pid), not writable, or open to other users.
  static Result<StateLock> take(const std::string& directory);
  // The same, except that a lock which somebody holds is no error and not waited for: nothing.
  static Result<std::optional<StateLock>> take_if_free(const std::string& directory);

  // Creates the directory where there is none. Fails (state_in_use) unless it is the caller's own
  // and nobody else can write to it.
  static Status make_own(const std::string& directory);

  StateLock(StateLock&&) = default;
  StateLock& operator=(StateLock&&) = default;
  // Takes the pid files back, if the process still may; the warden does it for a server that has
  // given its privileges up.
  ~StateLock();

  // Writes `<directory>/<name>.pid`.
  Status write_pid(const std::string& name, pid_t pid);

 private:
  StateLock(std::string directory, Fd lock)
      : directory_(std::move(directory)), lock_(std::move(lock)) {}
  static Result<Fd> open_lock(const std::string& directory);

  std::string directory_;
  Fd lock_;
  std::vector<std::string> pid_files_;  // their paths
};

}  // namespace hutch::cli
