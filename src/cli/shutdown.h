// The end of a running server, in order: new runs are refused, runs in flight finish, their answers
// go out, everything is closed. Knows the order and the times; the rooms do the work.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/log.h"

namespace hutch::cli {

class Shutdown {
 public:
  struct Calls {
    std::function<void()> refuse_new;                       // the listeners say so
    std::function<void(std::function<void()>)> drain_runs;  // calls its argument when none is left
    std::function<void()> stop_runs;                        // ends those in flight
    std::function<std::uint32_t()> connections;             // answers that may still be going out
    std::function<void()> close;                            // no connection is left after it
  };

  Shutdown(boost::asio::io_context& io, Log& log);

  // Before the io_context runs; what is called must live until it has run.
  void set_calls(Calls calls) { calls_ = std::move(calls); }

  // First call: as above. Second: runs in flight are ended. Further ones change nothing.
  void stop();
  // Both at once.
  void stop_now() { stop(), stop(); }
  // The server cannot go on: the same, without waiting for runs, and with this exit code.
  void fail(int exit_code);

  bool begun() const { return begun_; }
  int exit_code() const { return exit_code_; }

 private:
  void begin();
  void let_answers_out(int rounds_left);
  void finish();

  boost::asio::io_context& io_;
  boost::asio::steady_timer timer_;
  Log& log_;
  Calls calls_;
  int asked_ = 0;
  bool begun_ = false;
  int exit_code_ = 0;
};

}  // namespace hutch::cli
