#include "cli/stop_signals.h"

#include <sys/signalfd.h>

#include <span>

#include "base/sys.h"

namespace hutch::cli {

StopSignals::StopSignals() {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    // Who was started to survive a hang-up (nohup) does.
    struct sigaction now {};
    ::sigaction(number, nullptr, &now);
    if (now.sa_handler != SIG_IGN) sigaddset(&wanted, number);
  }
  ::pthread_sigmask(SIG_BLOCK, &wanted, &before_);
  fd_ = Fd(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
}

StopSignals::~StopSignals() {
  // One that waits would end the process the moment it is let through.
  while (take() != 0) continue;
  give_back();
}

int StopSignals::take() const {
  signalfd_siginfo info{};
  const auto got = sys::read_some(fd_.get(), std::as_writable_bytes(std::span(&info, 1)));
  return got && got->size == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

void StopSignals::give_back() const { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace hutch::cli
