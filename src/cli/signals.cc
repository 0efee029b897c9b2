#include "cli/signals.h"

#include <csignal>
#include <utility>

namespace hutch::cli {

Signals::Signals(boost::asio::io_context& io, Log& log, Calls calls)
    : set_(io), log_(log), calls_(std::move(calls)) {
  // A client that leaves in the middle of its answer is an error of write(), not the server's end.
  std::signal(SIGPIPE, SIG_IGN);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD}) set_.add(number);
  wait();
}

void Signals::wait() {
  set_.async_wait([this](const boost::system::error_code& error, int number) {
    if (error) return;
    handle(number);
    wait();
  });
}

void Signals::handle(int number) {
  switch (number) {
    case SIGTERM:
    case SIGINT: calls_.stop(); return;
    case SIGCHLD: calls_.child_ended(); return;
    default: log_.info("signal_ignored", "this signal has no meaning here", {{"signal", number}});
  }
}

}  // namespace hutch::cli
