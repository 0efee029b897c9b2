// One streamed run of POST /v1/execute: the run, its reader's connection, and what stands between
// them. Takes output from the run no faster than the client takes it from the connection.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "api/crusoe/events.h"
#include "api/crusoe/metrics.h"
#include "http/body_writer.h"
#include "service/shots.h"

namespace hutch::api::crusoe {

class ExecuteStream : public std::enable_shared_from_this<ExecuteStream> {
 public:
  struct Options {
    std::uint32_t timeout_s = kTimeoutDefaultS;  // the run's
    std::chrono::milliseconds still_running{};   // so often without an event a comment is sent
  };

  ExecuteStream(boost::asio::any_io_executor executor, service::Shots& shots, Metrics& metrics,
                Options options);

  // Begins the run; returns when the program has its code, or the run has failed before that.
  // Empty: it began, and send() tells the rest.
  boost::asio::awaitable<std::optional<Error>> begin(model::ShotSpec spec);
  // Ends the run.
  void cancel() { cancellation_->cancel(); }
  // Writes the events until the last one, or until the client is gone, which ends the run. Returns
  // when the run is over.
  boost::asio::awaitable<void> send(http::BodyWriter& writer);

 private:
  boost::asio::awaitable<void> run(model::ShotSpec spec);
  void wake();
  boost::asio::awaitable<bool> await_change(std::chrono::milliseconds at_most);
  boost::asio::awaitable<void> send_events(http::BodyWriter& writer);
  boost::asio::awaitable<void> send_end(http::BodyWriter& writer);
  boost::asio::awaitable<bool> put(http::BodyWriter& writer, std::string bytes);
  void tell_held();

  service::Shots& shots_;
  Metrics& metrics_;
  const Options options_;
  const std::shared_ptr<service::LiveShot> live_;
  const std::shared_ptr<service::Cancellation> cancellation_;
  boost::asio::steady_timer change_;
  std::optional<Result<service::ShotAnswer>> answer_;
  EventWriter events_;
  http::BodyWriter* writer_ = nullptr;  // while send() runs
  std::uint64_t writing_bytes_ = 0;
  std::uint64_t files_bytes_ = 0;  // still to be sent
};

}  // namespace hutch::api::crusoe
