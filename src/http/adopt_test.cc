// A connection that was not accepted: one end of a socket pair.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <span>

#include "base/sys.h"
#include "http/server.h"

namespace hutch::http {
namespace {

using boost::asio::awaitable;

class AdoptTest : public testing::Test {
 protected:
  AdoptTest() : server_(io_, clock_, random_, {}, routes()) {
    auto pair = sys::socket_pair(SOCK_STREAM).value();
    client_ = std::move(pair.first);
    EXPECT_TRUE(server_.adopt(std::move(pair.second), [this] { ++ended_; }));
  }

  Router routes() {
    const auto hello = [](Request, std::shared_ptr<Departure>) -> awaitable<Response> {
      co_return Response{.body = "hello"};
    };
    const auto hang = [this](Request, std::shared_ptr<Departure> departure) {
      return wait_for_leaving(std::move(departure));
    };
    return Router({{.method = "GET", .path = "/hello", .handler = hello},
                   {.method = "GET", .path = "/hang", .handler = hang}});
  }

  awaitable<Response> wait_for_leaving(std::shared_ptr<Departure> departure) {
    boost::asio::steady_timer never(io_, std::chrono::steady_clock::time_point::max());
    departure->on_leave([&] { never.cancel(), left_ = true; });
    running_ = true;
    boost::system::error_code ec;
    co_await never.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ec));
    Response response;
    response.abandoned = true;
    co_return response;
  }

  void ask(const std::string& path) {
    const std::string text = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
    ASSERT_TRUE(sys::write_all(client_.get(), text));
  }

  void run_until(const std::function<bool()>& done) {
    while (!done()) ASSERT_GT(io_.run_one_for(std::chrono::seconds(20)), 0U);
  }

  boost::asio::io_context io_{1};
  SystemClock clock_;
  SystemRandom random_;
  int ended_ = 0;
  bool running_ = false;
  bool left_ = false;
  Fd client_;
  Server server_;
};

TEST_F(AdoptTest, IsServedAsOneThatWasAccepted) {
  EXPECT_EQ(server_.connections(), 1U);
  ask("/hello");
  std::string seen;
  run_until([&] {
    std::array<std::byte, 4096> part{};
    if (::recv(client_.get(), part.data(), 1, MSG_PEEK | MSG_DONTWAIT) <= 0) return false;
    const auto got = sys::read_some(client_.get(), part).value();
    seen.append(reinterpret_cast<const char*>(part.data()), got.size);
    return seen.ends_with("hello");
  });
  EXPECT_THAT(seen, testing::StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_EQ(ended_, 0);
  client_.reset();
  run_until([&] { return ended_ > 0; });
  run_until([&] { return server_.connections() == 0; });
  EXPECT_EQ(ended_, 1);
}

TEST_F(AdoptTest, ItsLeavingIsADeparture) {
  ask("/hang");
  run_until([&] { return running_; });
  client_.reset();
  run_until([&] { return ended_ > 0; });
  EXPECT_TRUE(left_);
}

TEST_F(AdoptTest, ClosingTheServerEndsIt) {
  ask("/hang");
  run_until([&] { return running_; });
  server_.close();
  run_until([&] { return ended_ > 0; });
  EXPECT_TRUE(left_);
  std::byte one{};
  EXPECT_EQ(sys::read_some(client_.get(), std::span(&one, 1))->size, 0U);
}

}  // namespace
}  // namespace hutch::http
