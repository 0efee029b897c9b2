// Standard output and standard error of the command, as the program's streams: every byte as it
// came. Waits for a slow reader without being deaf to signals; the descriptors stay as they were
// for whoever shares them.
#pragma once

#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace hutch::cli {

class RunOutput {
 public:
  // `fd` is 1 or 2, `stop_fd` is readable when a signal waits.
  RunOutput(int fd, int stop_fd);

  // All of it. Errors: cancelled, by a signal or because the reader has left, which EPIPE in
  // Error::sys_errno says; otherwise io or disk_full.
  Status write(std::string_view bytes);
  // Whether what was written last stopped inside a line.
  bool inside_line() const { return inside_line_; }

 private:
  enum class Kind { file, pipe, socket, terminal };

  tl::unexpected<Error> failed(Error cause) const;
  Result<std::size_t> write_part(std::string_view bytes) const;

  int fd_;
  int stop_fd_;
  Kind kind_ = Kind::file;
  Fd own_;  // the same terminal, opened anew so that it need not block
  bool inside_line_ = false;
};

}  // namespace hutch::cli
