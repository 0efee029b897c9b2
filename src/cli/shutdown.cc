#include "cli/shutdown.h"

#include <boost/asio/post.hpp>
#include <chrono>

namespace hutch::cli {
namespace {

constexpr std::chrono::milliseconds kRound{25};
constexpr int kRounds = 200;  // 5 s for a client to take its answer

}  // namespace

Shutdown::Shutdown(boost::asio::io_context& io, Log& log) : io_(io), timer_(io), log_(log) {}

void Shutdown::stop() {
  if (++asked_ == 1 && !begun_) {
    log_.info("draining", "stopping: runs in flight finish, new ones are refused");
    begin();
  } else if (asked_ == 2) {
    log_.info("stopping_now", "asked again: runs in flight are ended");
    calls_.stop_runs();
  }
}

void Shutdown::fail(int exit_code) {
  exit_code_ = exit_code;
  if (!begun_) begin();
  calls_.stop_runs();
}

void Shutdown::begin() {
  begun_ = true;
  calls_.refuse_new();
  calls_.drain_runs([this] { let_answers_out(kRounds); });
}

void Shutdown::let_answers_out(int rounds_left) {
  if (rounds_left == 0 || calls_.connections() == 0) return finish();
  timer_.expires_after(kRound);
  timer_.async_wait([this, rounds_left](const boost::system::error_code& error) {
    if (!error) let_answers_out(rounds_left - 1);
  });
}

void Shutdown::finish() {
  calls_.close();
  // Closed connections end inside the loop, in the turns before this one.
  boost::asio::post(io_, [this] { boost::asio::post(io_, [this] { io_.stop(); }); });
}

}  // namespace hutch::cli
