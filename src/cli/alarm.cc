#include "cli/alarm.h"

#include <unistd.h>

namespace hutch::cli {

Alarm::Alarm(unsigned seconds) {
  // Without SA_RESTART the handler's mere existence is what interrupts.
  struct sigaction interrupt {};
  interrupt.sa_handler = [](int) {};
  ::sigaction(SIGALRM, &interrupt, &before_);
  ::alarm(seconds);
}

Alarm::~Alarm() {
  ::alarm(0);
  ::sigaction(SIGALRM, &before_, nullptr);
}

}  // namespace hutch::cli
