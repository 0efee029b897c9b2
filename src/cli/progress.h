// One line on standard error that says what is waited for and since when. Only on a terminal, only
// after a moment, and gone without a trace before anything else is printed.
#pragma once

#include <string>

#include "base/clock.h"

namespace hutch::cli {

class Progress {
 public:
  enum class Wanted { yes, no };

  // `what` as in "starting a sandbox". Shows nothing when not wanted, when standard error is no
  // terminal, or when that one cannot take a line back (TERM=dumb).
  Progress(const Clock& clock, std::string what, Wanted wanted);
  ~Progress() { end(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Something else is waited for, since the same moment.
  void now(const std::string& what) { what_ = what; }
  // To be called again and again while waiting: draws the line with its new time.
  void tick();
  // Takes the line away; nothing is drawn from here on.
  void end();

 private:
  const Clock& clock_;
  std::string what_;
  Nanos start_;
  bool shows_;
  bool drawn_ = false;
};

}  // namespace hutch::cli
