// For tests of the door: one fresh server with everything real but the engine, on loopback.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <future>
#include <regex>
#include <string>
#include <thread>

#include "api/crusoe/routes.h"
#include "engine/fake_engine.h"
#include "http/server.h"

namespace hutch {

// The bytes of the wire.
inline std::string to_wire(const std::string& request) {
  const std::size_t empty = request.find("\n\n");
  std::string head = request.substr(0, empty);
  std::string body = request.substr(std::min(request.size(), empty + 2));
  if (body.ends_with('\n')) body.pop_back();
  const bool framed = head.find("Content-Length:") != std::string::npos ||
                      head.find("Transfer-Encoding:") != std::string::npos;
  if (!body.empty() && !framed) head += "\nContent-Length: " + std::to_string(body.size());
  return std::regex_replace(head + "\n\n", std::regex("\n"), "\r\n") + body;
}

inline engine::FakeEngineOptions small_streams() {
  engine::FakeEngineOptions options;
  options.limits.stream_bytes = 64;
  return options;
}

inline service::ShotsOptions short_waits() {
  service::ShotsOptions options;
  options.pool.wait = std::chrono::milliseconds(50);
  return options;
}

// One fresh server with everything real but the engine.
class Running {
 public:
  explicit Running(const std::string& setup,
                   std::chrono::milliseconds still_running = std::chrono::seconds(15))
      : still_running_(still_running) {
    if (setup == "no sandbox can be made") {
      engine_.set_create_error(Error{ErrorCode::setup_failed, Step::init_clone, 1, "refused"});
    }
    std::promise<void> filled;
    shots_.start([&filled](Status) { filled.set_value(); });
    EXPECT_TRUE(server_.listen());
    EXPECT_TRUE(public_.listen());
    thread_ = std::thread([this] { io_.run(); });
    filled.get_future().wait();
    if (setup != "draining") return;
    std::promise<void> draining;
    boost::asio::post(io_, [&] {
      draining_ = true;
      shots_.drain([] {});
      draining.set_value();
    });
    draining.get_future().wait();
  }

  ~Running() {
    boost::asio::post(io_, [this] {
      server_.close();
      public_.close();
      shots_.stop_now();
    });
    // The pool would go on trying for as long as the loop runs.
    while (connections() > 0) std::this_thread::yield();
    io_.stop();
    thread_.join();
  }

  std::uint16_t port(const std::string& setup) {
    return setup == "public listener" ? public_.port() : server_.port();
  }

  service::PoolNumbers numbers() {
    std::promise<service::PoolNumbers> numbers;
    boost::asio::post(io_, [&] { numbers.set_value(shots_.pool_numbers()); });
    return numbers.get_future().get();
  }

  // Runs it on the server's thread.
  void with_shots(const std::function<void(service::Shots&)>& work) {
    std::promise<void> done;
    boost::asio::post(io_, [&] {
      work(shots_);
      done.set_value();
    });
    done.get_future().wait();
  }

  std::uint32_t connections() {
    std::promise<std::uint32_t> count;
    boost::asio::post(io_, [&] { count.set_value(server_.connections() + public_.connections()); });
    return count.get_future().get();
  }

 private:
  http::Router routes() {
    return api::crusoe::internal_routes({.shots = shots_,
                                         .metrics = metrics_,
                                         .body_bytes_max = 4096,
                                         .draining = [this] { return draining_; },
                                         .still_running = still_running_});
  }

  const std::chrono::milliseconds still_running_;
  bool draining_ = false;
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      io_.get_executor()};
  SystemClock clock_;
  SystemRandom random_;
  engine::FakeEngine engine_{io_, small_streams()};
  service::Shots shots_{
      io_,          engine_, clock_, random_, [] { return service::HostMemory{64_GiB, 64_GiB}; },
      short_waits()};
  api::crusoe::Metrics metrics_{shots_};
  http::Server server_{io_, clock_, random_, {}, routes()};
  http::Server public_{io_, clock_, random_, {}, api::crusoe::public_routes()};
  std::thread thread_;
};

}  // namespace hutch
