#include "base/fd.h"

#include <unistd.h>

namespace hutch {

// Not retried on EINTR: on Linux the descriptor is gone by then, and a second close() could hit a
// descriptor that another thread has just been given.
void Fd::reset() {
  if (fd_ >= 0) {
    ::close(fd_);
    fd_ = -1;
  }
}

}  // namespace hutch
