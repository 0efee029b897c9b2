// The signals of a running server, turned into calls on its thread. Decides nothing about what a
// stop means.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <functional>

#include "base/log.h"

namespace hutch::cli {

class Signals {
 public:
  struct Calls {
    std::function<void()> stop;         // SIGTERM or SIGINT, each time
    std::function<void()> child_ended;  // SIGCHLD
    std::function<void()> reload;       // SIGHUP; where it is empty, the signal does nothing
  };

  // Takes the signals over. From here on SIGUSR1, SIGUSR2 and SIGPIPE do nothing; the first two are
  // logged. Call it after the warden was forked, which must not inherit this.
  Signals(boost::asio::io_context& io, Log& log, Calls calls);
  // The process is on its way out with its exit code: no signal changes that any more.
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

 private:
  void wait();
  void handle(int number);

  boost::asio::signal_set set_;
  Log& log_;
  Calls calls_;
};

}  // namespace hutch::cli
