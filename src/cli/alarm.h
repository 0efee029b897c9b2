// Gives a blocking system call an end. Uses SIGALRM, so there is one at a time in a process, and no
// other use of that signal.
#pragma once

#include <csignal>

namespace hutch::cli {

class Alarm {
 public:
  // After this time, and only once, a system call that blocks this thread comes back as
  // interrupted.
  explicit Alarm(unsigned seconds);
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

 private:
  struct sigaction before_ {};
};

}  // namespace hutch::cli
