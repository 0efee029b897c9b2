#include "cli/signals.h"

#include <array>
#include <csignal>
#include <utility>

namespace hutch::cli {
namespace {

constexpr std::array kTaken{SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD};

}  // namespace

Signals::Signals(boost::asio::io_context& io, Log& log, Calls calls)
    : set_(io), log_(log), calls_(std::move(calls)) {
  // A client that leaves in the middle of its answer is an error of write(), not the server's end.
  std::signal(SIGPIPE, SIG_IGN);
  for (const int number : kTaken) set_.add(number);
  wait();
}

// Blocked before the set gives them back to their default, which for most is the end.
Signals::~Signals() {
  sigset_t blocked;
  sigemptyset(&blocked);
  for (const int number : kTaken) sigaddset(&blocked, number);
  ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
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
    case SIGHUP:
      if (calls_.reload) return calls_.reload();
      [[fallthrough]];
    default: log_.info("signal_ignored", "this signal has no meaning here", {{"signal", number}});
  }
}

}  // namespace hutch::cli
