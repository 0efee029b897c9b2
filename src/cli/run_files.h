// The directory of `hutch run --out`, and the files that come back from a run into it. The names
// come from a sandbox: nothing is ever written outside the directory, no symbolic link below it is
// followed, and a file that was there is replaced whole or not at all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace hutch::cli {

class RunFiles {
 public:
  // Makes the directory, and what is missing above it. It may be reached through a link. Error: io.
  static Result<RunFiles> open(const std::string& directory);

  // `path` is relative to the directory, as a server names it. Error: rejected for a path that
  // leads out or through a link; io, disk_full, not_permitted. The message names the path, fit for
  // a terminal.
  Status write(std::string_view path, std::string_view bytes);

  std::uint64_t count() const { return count_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  RunFiles(std::string directory, Fd fd) : directory_(std::move(directory)), fd_(std::move(fd)) {}

  std::string directory_;
  Fd fd_;
  std::uint64_t count_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace hutch::cli
