// Answers that are made while they are sent: raw sockets against a real listener on loopback.
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "http/body_writer.h"
#include "http/raw_client.h"
#include "http/server.h"

namespace hutch::http {
namespace {

using boost::asio::awaitable;
using namespace std::chrono_literals;

// A body that the test pours out piece by piece, and what became of it. What the test's thread
// calls goes to the server's.
class Tap {
 public:
  explicit Tap(boost::asio::io_context& io) : io_(io), signal_(io) {}

  void pour(std::string piece) { order({Kind::write, std::move(piece), 0}); }
  void hold(std::uint64_t bytes) { order({Kind::hold, "", bytes}); }
  void fail() { order({Kind::fail, "", 0}); }
  void end() { order({Kind::end, "", 0}); }

  bool await(const std::string& event, int times = 1) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 20s, [&] { return events_[event] >= times; });
  }

  Response answer(const std::shared_ptr<Departure>& departure) {
    departure->on_leave([this] {
      add("left");
      signal_.cancel();
    });
    Response response{.content_type = "text/plain"};
    response.stream = [this, departure](BodyWriter& writer) { return run(writer, *departure); };
    return response;
  }

 private:
  enum class Kind { write, hold, fail, end };
  struct Order {
    Kind kind;
    std::string piece;
    std::uint64_t bytes;
  };

  void order(Order order) {
    boost::asio::post(io_, [this, order = std::move(order)] {
      orders_.push_back(order);
      signal_.cancel();
    });
  }

  void add(const std::string& event) {
    const std::lock_guard lock(mutex_);
    ++events_[event];
    changed_.notify_all();
  }

  // Once the client has left, whatever is written is too late.
  awaitable<void> run(BodyWriter& writer, const Departure& departure) {
    add("running");
    for (;;) {
      while (orders_.empty() && !departure.left()) {
        boost::system::error_code ec;
        signal_.expires_at(boost::asio::steady_timer::time_point::max());
        co_await signal_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ec));
      }
      Order order{Kind::write, "too late", 0};
      if (!departure.left()) {
        order = std::move(orders_.front());
        orders_.pop_front();
      }
      if (order.kind == Kind::end) break;
      if (order.kind == Kind::fail) throw std::runtime_error("secret");
      if (order.kind == Kind::hold) {
        writer.hold(order.bytes);
        add("held");
        continue;
      }
      const bool wrote = co_await writer.write(std::move(order.piece));
      add(wrote ? "wrote" : "gone");
      if (!wrote) break;
    }
    add("over");
  }

  boost::asio::io_context& io_;
  boost::asio::steady_timer signal_;
  std::deque<Order> orders_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, int> events_;
};

class StreamTest : public testing::Test {
 protected:
  ~StreamTest() override {
    on_server([this] { server_->close(); });
    work_.reset();
    thread_.join();
  }

  void start(Limits limits = {}) {
    const auto tapped = [this](Request request, std::shared_ptr<Departure> departure) {
      return open(std::move(request), std::move(departure));
    };
    Router router({{.method = "GET", .path = "/tap", .handler = tapped},
                   {.method = "HEAD", .path = "/tap", .handler = tapped}});
    ServerOptions options{.limits = limits};
    options.served = [this](const Served& served) {
      served_bytes_ = served.body_bytes_out;
      served_status_ = served.status;
    };
    server_ = std::make_unique<Server>(io_, clock_, random_, options, std::move(router));
    ASSERT_TRUE(server_->listen());
    thread_ = std::thread([this] { io_.run(); });
  }

  // "/tap?N" is answered from taps_[N].
  awaitable<Response> open(Request request, std::shared_ptr<Departure> departure) {
    co_return taps_.at(static_cast<std::size_t>(std::stoi("0" + request.query))).answer(departure);
  }

  void on_server(const std::function<void()>& work) {
    std::atomic<bool> done = false;
    boost::asio::post(io_, [&] {
      work();
      done = true;
      done.notify_all();
    });
    done.wait(false);
  }

  std::unique_ptr<RawClient> ask(const std::string& query = "0", const char* version = "1.1",
                                 const char* method = "GET") {
    auto client = std::make_unique<RawClient>(server_->port());
    client->send(std::string(method) + " /tap?" + query + " HTTP/" + version +
                 "\r\nHost: localhost\r\n\r\n");
    return client;
  }

  void await_no_connection() {
    for (bool gone = false; !gone;) on_server([&] { gone = server_->connections() == 0; });
  }

  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      io_.get_executor()};
  SystemClock clock_;
  SystemRandom random_;
  std::deque<Tap> taps_ = make_taps();
  std::atomic<std::uint64_t> served_bytes_ = 0;
  std::atomic<int> served_status_ = -1;
  std::unique_ptr<Server> server_;
  std::thread thread_;

 private:
  std::deque<Tap> make_taps() {
    std::deque<Tap> taps;
    for (int i = 0; i < 3; ++i) taps.emplace_back(io_);
    return taps;
  }
};

TEST_F(StreamTest, EachPieceGoesOutWhileTheNextIsAwaited) {
  start();
  const auto client = ask();
  const RawResponse response = client->read(RawClient::Body::none);
  EXPECT_EQ(response.status(), 200);
  EXPECT_EQ(response.field("Transfer-Encoding"), "chunked");
  EXPECT_EQ(response.field("Content-Length"), "");
  for (const std::string piece : {"one", "two\n", "0\r\n\r\n"}) {
    taps_[0].pour(piece);
    EXPECT_EQ(client->read_chunk(), piece);
    EXPECT_FALSE(client->whole());
  }
  taps_[0].end();
  EXPECT_EQ(client->read_chunk(), "");
  EXPECT_TRUE(client->whole());
  ASSERT_TRUE(taps_[0].await("over"));
  client->send("GET /tap HTTP/1.1\r\nHost: localhost\r\n\r\n");
  taps_[0].end();
  EXPECT_EQ(client->read().body, "") << "the connection goes on";
  EXPECT_EQ(served_status_, 200);
}

TEST_F(StreamTest, AnEmptyPieceDoesNotEndTheBody) {
  start();
  const auto client = ask();
  client->read(RawClient::Body::none);
  taps_[0].pour("");
  taps_[0].pour("after");
  taps_[0].end();
  EXPECT_EQ(client->read_chunk(), "after");
  EXPECT_EQ(client->read_chunk(), "");
  EXPECT_TRUE(client->whole());
}

TEST_F(StreamTest, TheNextRequestOfAPipelineWaits) {
  start();
  const auto client = ask("0");
  client->send("GET /tap?1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(taps_[0].await("running"));
  taps_[1].pour("second");
  taps_[1].end();
  taps_[0].pour("first");
  taps_[0].end();
  EXPECT_EQ(client->read().body, "first");
  EXPECT_EQ(client->read().body, "second");
}

TEST_F(StreamTest, HttpOneZeroReadsUntilTheEndOfTheConnection) {
  start();
  const auto client = ask("0", "1.0");
  taps_[0].pour("one");
  taps_[0].pour("two");
  taps_[0].end();
  const RawResponse response = client->read();
  EXPECT_EQ(response.field("Transfer-Encoding"), "");
  EXPECT_EQ(response.field("Connection"), "close");
  EXPECT_EQ(response.body, "onetwo");
  EXPECT_TRUE(client->at_end());
}

TEST_F(StreamTest, AHeadRequestHasNoBody) {
  start();
  const auto client = ask("0", "1.1", "HEAD");
  EXPECT_EQ(client->read(RawClient::Body::none).status(), 200);
  client->send("GET /tap?1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  taps_[1].pour("x");
  taps_[1].end();
  EXPECT_EQ(client->read().body, "x");
}

TEST_F(StreamTest, ABodyThatBreaksOffIsNeverWhole) {
  start();
  const auto client = ask();
  client->read(RawClient::Body::none);
  taps_[0].pour("begun");
  taps_[0].fail();
  EXPECT_EQ(client->read_chunk(), "begun");
  EXPECT_EQ(client->read_chunk(), "");
  EXPECT_FALSE(client->whole());
  EXPECT_TRUE(client->at_end());
}

TEST_F(StreamTest, TheClientsLeavingIsToldBetweenTwoPieces) {
  start();
  int times = 0;
  for (const char* how : {"close", "reset", "half"}) {
    const auto client = ask();
    client->read(RawClient::Body::none);
    if (*how == 'c') client->close();
    if (*how == 'r') client->reset();
    if (*how == 'h') client->half_close();
    ASSERT_TRUE(taps_[0].await("left", ++times)) << how;
    ASSERT_TRUE(taps_[0].await("gone", times)) << how;
    await_no_connection();
  }
}

TEST_F(StreamTest, TheClientsLeavingEndsAWriteThatWaits) {
  start();
  int times = 0;
  for (const char* how : {"close", "reset", "half"}) {
    const auto client = ask();
    client->read(RawClient::Body::none);
    taps_[0].pour(std::string(64_MiB, 'x'));
    // Some of it has come, and the rest waits.
    pollfd readable{.fd = client->fd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&readable, 1, 20'000), 1);
    if (*how == 'c') client->close();
    if (*how == 'r') client->reset();
    if (*how == 'h') client->half_close();
    ASSERT_TRUE(taps_[0].await("gone", ++times)) << how;
    await_no_connection();
  }
}

TEST_F(StreamTest, LeavingIsSeenBehindWhatIsReadAhead) {
  start();
  const auto client = ask();
  client->read(RawClient::Body::none);
  client->send(std::string(100'000, 'x'));
  client->close();
  EXPECT_TRUE(taps_[0].await("left"));
}

TEST_F(StreamTest, GivesUpOnAClientThatDoesNotRead) {
  start({.write_progress_time = 100ms});
  const auto client = ask();
  taps_[0].pour(std::string(64_MiB, 'x'));
  EXPECT_TRUE(taps_[0].await("gone"));
  await_no_connection();
}

TEST_F(StreamTest, NobodyIsGivenUpWhileThereIsNothingToRead) {
  start({.idle_time = 50ms, .write_progress_time = 50ms});
  const auto client = ask();
  client->read(RawClient::Body::none);
  const auto wait = std::make_shared<boost::asio::steady_timer>(io_);
  std::atomic<bool> waited = false;
  on_server([&] {
    wait->expires_after(300ms);
    wait->async_wait([&](const boost::system::error_code&) {
      waited = true;
      waited.notify_all();
    });
  });
  waited.wait(false);
  taps_[0].pour("still here");
  EXPECT_EQ(client->read_chunk(), "still here");
}

TEST_F(StreamTest, ASlowReaderGetsEveryByte) {
  start();
  const auto client = ask();
  client->read(RawClient::Body::none);
  std::string sent;
  for (int i = 0; i < 200; ++i) {
    std::string piece(100'003, static_cast<char>('a' + i % 26));
    sent += piece;
    taps_[0].pour(std::move(piece));
  }
  taps_[0].end();
  std::string got;
  for (std::string chunk = client->read_chunk(); !chunk.empty(); chunk = client->read_chunk()) {
    got += chunk;
  }
  EXPECT_TRUE(client->whole());
  EXPECT_TRUE(got == sent);
  EXPECT_TRUE(taps_[0].await("over"));
  EXPECT_EQ(served_bytes_, sent.size());
}

TEST_F(StreamTest, WhoHoldsLongestMakesRoom) {
  start({.answers_bytes_max = 10_MiB});
  const auto first = ask("0");
  const auto second = ask("1");
  const auto third = ask("2");
  for (Tap& tap : taps_) ASSERT_TRUE(tap.await("running"));
  taps_[1].hold(4_MiB);
  ASSERT_TRUE(taps_[1].await("held"));
  taps_[0].hold(4_MiB);
  ASSERT_TRUE(taps_[0].await("held"));
  taps_[2].hold(64_KiB);  // not counted
  taps_[2].hold(2_MiB);
  taps_[0].hold(1_MiB);
  taps_[0].hold(4_MiB);
  ASSERT_TRUE(taps_[0].await("held", 3));
  ASSERT_TRUE(taps_[2].await("held", 2));
  on_server([&] { EXPECT_EQ(server_->connections(), 3U); });
  taps_[2].hold(2_MiB + 1);
  EXPECT_TRUE(taps_[1].await("left")) << "it has been at it longest";
  // Now there are 6 MiB. One whose own want is the trouble makes room itself, if it was first.
  taps_[0].hold(9_MiB);
  EXPECT_TRUE(taps_[0].await("left"));
  taps_[2].hold(20_MiB);
  ASSERT_TRUE(taps_[2].await("held", 4)) << "the last one is let through";
  taps_[2].pour("x");
  third->read(RawClient::Body::none);
  EXPECT_EQ(third->read_chunk(), "x");
  taps_[2].end();
  ASSERT_TRUE(taps_[2].await("over"));
  // What was held is given back with the answer.
  const auto fourth = ask("2");
  taps_[2].hold(9_MiB);
  const auto fifth = ask("1");
  taps_[1].hold(900_KiB);
  taps_[1].pour("y");
  fifth->read(RawClient::Body::none);
  taps_[2].pour("z");
  fourth->read(RawClient::Body::none);
  EXPECT_EQ(fourth->read_chunk(), "z");
}

TEST_F(StreamTest, ADrainLetsTheStreamFinishAndThenCloses) {
  start();
  const auto client = ask();
  client->read(RawClient::Body::none);
  on_server([this] { server_->drain(); });
  taps_[0].pour("after");
  taps_[0].end();
  EXPECT_EQ(client->read_chunk(), "after");
  EXPECT_EQ(client->read_chunk(), "");
  EXPECT_TRUE(client->whole());
  EXPECT_TRUE(client->at_end());
}

TEST_F(StreamTest, ClosingTheServerEndsTheStream) {
  start();
  const auto client = ask();
  client->read(RawClient::Body::none);
  taps_[0].pour(std::string(64_MiB, 'x'));
  pollfd readable{.fd = client->fd(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&readable, 1, 20'000), 1);
  on_server([this] { server_->close(); });
  EXPECT_TRUE(taps_[0].await("left"));
  EXPECT_TRUE(taps_[0].await("gone"));
}

}  // namespace
}  // namespace hutch::http
