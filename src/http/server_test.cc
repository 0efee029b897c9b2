// Raw sockets against a real listener on loopback.
#include "http/server.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <condition_variable>
#include <ctime>
#include <future>
#include <mutex>
#include <thread>

#include "http/raw_client.h"

namespace hutch::http {
namespace {

using boost::asio::awaitable;
using namespace std::chrono_literals;
using namespace std::string_literals;

constexpr std::uint64_t kBodyMax = 100'000;

// What happened on the server's thread, for the test's thread to wait for.
class Events {
 public:
  void add(const std::string& event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(event);
    changed_.notify_all();
  }
  bool await(const std::string& event) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 20s, [&] {
      return std::find(events_.begin(), events_.end(), event) != events_.end();
    });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> events_;
};

awaitable<Response> echo(Request request, std::shared_ptr<Departure> /*departure*/) {
  Response response{.content_type = "text/plain"};
  response.body = request.method + " " + request.path + " " + request.query + " " + request.body;
  co_return response;
}

awaitable<Response> large(Request /*request*/, std::shared_ptr<Departure> /*departure*/) {
  co_return Response{.content_type = "text/plain", .body = std::string(25'000'000, 'x')};
}

awaitable<Response> broken(Request /*request*/, std::shared_ptr<Departure> /*departure*/) {
  throw std::runtime_error("secret");
  co_return Response{};
}

// Answers only when its client has left.
awaitable<Response> hang(boost::asio::io_context& io, Events& events,
                         std::shared_ptr<Departure> departure) {
  boost::asio::steady_timer never(io, std::chrono::steady_clock::time_point::max());
  departure->on_leave([&never] { never.cancel(); });
  events.add("running");
  boost::system::error_code ec;
  co_await never.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ec));
  events.add("left");
  Response response;
  response.abandoned = true;
  co_return response;
}

class ServerTest : public testing::Test {
 protected:
  ~ServerTest() override { stop(); }

  void start(Limits limits = {}) {
    const auto hanging = [this](Request, std::shared_ptr<Departure> departure) {
      return hang(io_, events_, std::move(departure));
    };
    Router router({
        {.method = "GET", .path = "/echo", .handler = echo},
        {.method = "POST", .path = "/echo", .body_bytes_max = kBodyMax, .handler = echo},
        {.method = "POST", .path = "/huge", .body_bytes_max = 64_MiB, .handler = echo},
        {.method = "GET", .path = "/large", .handler = large},
        {.method = "GET", .path = "/broken", .handler = broken},
        {.method = "GET", .path = "/hang", .handler = hanging},
        {.method = "POST", .path = "/hang", .body_bytes_max = 64_MiB, .handler = hanging},
    });
    ServerOptions options{.limits = limits};
    options.served = [this](const Served& served) {
      events_.add("served " + std::string(served.route) + " " + std::to_string(served.status));
    };
    server_ = std::make_unique<Server>(io_, clock_, random_, options, std::move(router));
    ASSERT_TRUE(server_->listen());
    port_ = server_->port();
    thread_ = std::thread([this] { io_.run(); });
  }

  // Runs `work` on the server's thread and waits for it.
  void on_server(const std::function<void()>& work) {
    std::atomic<bool> done = false;
    boost::asio::post(io_, [&] {
      work();
      done = true;
      done.notify_all();
    });
    done.wait(false);
  }

  void stop() {
    if (!thread_.joinable()) return;
    on_server([this] { server_->close(); });
    work_.reset();
    thread_.join();
  }

  RawResponse ask(const std::string& bytes) {
    RawClient client(port_);
    client.send(bytes);
    return client.read();
  }

  // Sends a head (without its empty line) and expects a refusal that ends the connection.
  void expect_refusal(const std::string& bytes, int status) {
    RawClient client(port_);
    client.send(bytes);
    const RawResponse response = client.read();
    EXPECT_EQ(response.status(), status) << bytes.substr(0, 200) << "\n" << response.head;
    EXPECT_EQ(response.field("Connection"), "close") << bytes.substr(0, 200);
    EXPECT_EQ(response.field("X-Request-Id").size(), 32U) << bytes.substr(0, 200);
    EXPECT_TRUE(response.body.starts_with("{\"error\":\"")) << response.body;
    EXPECT_TRUE(client.at_end()) << bytes.substr(0, 200);
  }

  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      io_.get_executor()};
  SystemClock clock_;
  SystemRandom random_;
  Events events_;
  std::unique_ptr<Server> server_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

std::string get(const std::string& target, const std::string& fields = "") {
  return "GET " + target + " HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n";
}

std::string post(const std::string& target, const std::string& fields, const std::string& body) {
  return "POST " + target + " HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n" + body;
}

std::string with_length(const std::string& body) {
  return "Content-Length: " + std::to_string(body.size()) + "\r\n";
}

std::string chunk(const std::string& bytes) {
  char size[32];
  std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  return size + bytes + "\r\n";
}

constexpr const char* kChunked = "Transfer-Encoding: chunked\r\n";

TEST_F(ServerTest, AnswersOverOneConnectionAgainAndAgain) {
  start();
  RawClient client(port_);
  for (int i = 0; i < 3; ++i) {
    const std::string body = "body " + std::to_string(i);
    client.send(post("/echo?a=%2e", with_length(body), body));
    const RawResponse response = client.read();
    EXPECT_EQ(response.status(), 200);
    EXPECT_EQ(response.body, "POST /echo a=%2e " + body);
    EXPECT_EQ(response.field("Connection"), "");
    EXPECT_NE(response.field("Date"), "");
  }
}

TEST_F(ServerTest, AnswersPipelinedRequestsInOrder) {
  start();
  RawClient client(port_);
  std::string all;
  for (int i = 0; i < 50; ++i) {
    const std::string body = std::to_string(i);
    all += i % 2 == 0 ? post("/echo", with_length(body), body)
                      : post("/echo", kChunked, chunk(body) + "0\r\n\r\n");
  }
  client.send(all);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(client.read().body, "POST /echo  " + std::to_string(i));
}

TEST_F(ServerTest, KeepsAGivenRequestIdOnlyWhenItIsHarmless) {
  start();
  EXPECT_EQ(ask(get("/echo", "X-Request-Id: a.B_9-z\r\n")).field("X-Request-Id"), "a.B_9-z");
  const std::string longest(64, 'x');
  EXPECT_EQ(ask(get("/echo", "x-request-id: " + longest + "\r\n")).field("X-Request-Id"), longest);
  for (const std::string& given : {longest + "x", std::string("a b"), std::string("a\"b"),
                                   std::string("\xC3\xA9"), std::string()}) {
    const auto id = ask(get("/echo", "X-Request-Id: " + given + "\r\n")).field("X-Request-Id");
    EXPECT_EQ(id.size(), 32U);
    EXPECT_NE(id, given);
  }
  EXPECT_NE(ask(get("/echo")).field("X-Request-Id"), ask(get("/echo")).field("X-Request-Id"));
}

TEST_F(ServerTest, RefusesEveryFramingThatCouldBeReadInTwoWays) {
  start();
  const std::string chunks = chunk("a") + "0\r\n\r\n";
  expect_refusal(post("/echo", std::string(kChunked) + "Content-Length: 1\r\n", chunks), 400);
  expect_refusal(post("/echo", "Content-Length: 1\r\n" + std::string(kChunked), chunks), 400);
  expect_refusal(post("/echo", std::string(kChunked) + kChunked, chunks), 400);
  for (const char* coding : {"gzip, chunked", "chunked, gzip", "gzip", "identity", "xchunked",
                             "chunked;q=1", "Chunked ,", "\"chunked\"", ""}) {
    expect_refusal(post("/echo", "Transfer-Encoding: " + std::string(coding) + "\r\n", chunks),
                   400);
  }
  expect_refusal(
      "POST /echo HTTP/1.0\r\nHost: localhost\r\n" + std::string(kChunked) + "\r\n" + chunks, 400);
  for (const char* length :
       {"-1", "+1", "0x1", "1,1", "1, 1", "1 1", "a", "", "1.0", "99999999999999999999"}) {
    expect_refusal(post("/echo", "Content-Length: " + std::string(length) + "\r\n", "a"), 400);
  }
  expect_refusal(post("/echo", "Content-Length: 1\r\nContent-Length: 1\r\n", "a"), 400);
  expect_refusal(post("/echo", "Content-Length: 1\r\nContent-Length: 2\r\n", "ab"), 400);
}

TEST_F(ServerTest, RefusesABrokenChunk) {
  start();
  for (const char* body : {"x\r\na\r\n0\r\n\r\n", "-1\r\na\r\n", "1\na\n0\n\n",
                           "2\r\na\r\n0\r\n\r\n", "1\r\nab\r\n0\r\n\r\n", "FFFFFFFFFFFFFFFFF\r\n",
                           "1 \r\na\r\n0\r\n\r\n", "\r\n", "1;\x01\r\na\r\n0\r\n\r\n"}) {
    expect_refusal(post("/echo", kChunked, body), 400);
  }
  expect_refusal(post("/echo", kChunked, "1;" + std::string(20'000, 'a')), 400);
  expect_refusal(post("/echo", kChunked, "0\r\nA: " + std::string(20'000, 'a')), 400);
}

TEST_F(ServerTest, TrailersNeverBecomeFields) {
  start();
  RawClient client(port_);
  client.send(post("/echo", kChunked, chunk("a") + "0\r\nX-Request-Id: trailer\r\n\r\n") +
              get("/echo"));
  const RawResponse first = client.read();
  EXPECT_EQ(first.body, "POST /echo  a");
  EXPECT_NE(first.field("X-Request-Id"), "trailer");
  EXPECT_EQ(client.read().body, "GET /echo  ");
}

TEST_F(ServerTest, RefusesABrokenHead) {
  start();
  expect_refusal("GET /echo HTTP/1.1\r\n\r\n", 400);
  expect_refusal("GET /echo HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400);
  expect_refusal(get("/echo", "Authorization: a\r\nAuthorization: b\r\n"), 400);
  expect_refusal(get("/echo", "A : b\r\n"), 400);
  expect_refusal(get("/echo", "A: b\r\n c\r\n"), 400);
  expect_refusal("GET /echo HTTP/1.1\nHost: localhost\n\n", 400);
  expect_refusal("GET /echo HTTP/1.1\r\nHost: localhost\r\nA: b\rC: d\r\n\r\n", 400);
  expect_refusal("GET /echo HTTP/1.1\r\nHost: local\0host\r\n\r\n"s, 400);
  expect_refusal("GET /echo HTTP/2.0\r\nHost: localhost\r\n\r\n", 505);
  expect_refusal("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400);
  expect_refusal("GET /echo HTTP/1.11\r\nHost: localhost\r\n\r\n", 400);
  expect_refusal("G@T /echo HTTP/1.1\r\nHost: localhost\r\n\r\n", 400);
  expect_refusal("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n"s, 400);
  expect_refusal("GET /" + std::string(9000, 'a') + " HTTP/1.1\r\nHost: localhost\r\n\r\n", 414);
  expect_refusal(get("/echo", "X: " + std::string(1 << 20, 'a') + "\r\n"), 431);
  std::string many;
  for (int i = 0; i < 10'000; ++i) many += "X" + std::to_string(i) + ": y\r\n";
  expect_refusal(get("/echo", many), 431);
}

TEST_F(ServerTest, ChecksHostAndOrigin) {
  start();
  const auto with = [&](const std::string& fields) {
    return ask("GET /echo HTTP/1.1\r\n" + fields + "\r\n");
  };
  EXPECT_EQ(with("Host: evil.example\r\n").body, R"({"error":"host not allowed"})");
  EXPECT_EQ(with("Host: evil.example\r\n").status(), 403);
  EXPECT_EQ(with("Host:\r\n").status(), 403);
  EXPECT_EQ(with("Host: localhost\r\nOrigin: http://evil.example\r\n").body,
            R"({"error":"origin not allowed"})");
  EXPECT_EQ(with("Host: localhost\r\nOrigin: null\r\n").status(), 403);
  EXPECT_EQ(with("Host: localhost:1\r\nOrigin: http://127.0.0.1:3000\r\n").status(), 200);
  EXPECT_EQ(ask("GET /echo HTTP/1.0\r\n\r\n").status(), 403);
}

TEST_F(ServerTest, RoutesByTheLiteralPath) {
  start();
  for (const char* path : {"/nothing", "/echo/", "//echo", "/%65cho", "/x/../echo",
                           "/v1/%2e%2e/echo", "/ECHO", "/echo%00", "/echo;a"}) {
    const RawResponse response = ask(get(path));
    EXPECT_EQ(response.status(), 404) << path;
    EXPECT_EQ(response.body, R"({"error":"not found"})");
  }
  EXPECT_EQ(ask(get("/echo?")).status(), 200);
}

TEST_F(ServerTest, NamesTheMethodsThatAPathHas) {
  start();
  for (const char* method :
       {"PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "ANY", "get"}) {
    const auto response = ask(std::string(method) + " /echo HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(response.status(), 405) << method;
    EXPECT_EQ(response.body, R"({"error":"method not allowed"})");
    EXPECT_EQ(response.field("Allow"), "GET, POST");
  }
  RawClient client(port_);
  client.send("HEAD /echo HTTP/1.1\r\nHost: localhost\r\n\r\n" + get("/echo"));
  const RawResponse head = client.read(RawClient::Body::none);
  EXPECT_EQ(head.status(), 405);
  EXPECT_EQ(client.read().body, "GET /echo  ") << "no byte of a body follows an answer to HEAD";
}

TEST_F(ServerTest, HoldsTheBodyLimitAtBothEdges) {
  start();
  const std::string fits(kBodyMax, 'a');
  const std::string too_much(kBodyMax + 1, 'a');
  const std::string text = R"({"error":"request body is larger than 100000 bytes"})";
  EXPECT_EQ(ask(post("/echo", with_length(fits), fits)).status(), 200);
  // Refused by what was declared: nothing of it has to come.
  EXPECT_EQ(ask(post("/echo", "Content-Length: 100001\r\n", "")).body, text);
  EXPECT_EQ(ask(post("/echo", "Content-Length: 1073741824\r\n", "")).status(), 413);
  expect_refusal(post("/echo", with_length(too_much), too_much), 413);

  const std::string half(kBodyMax / 2, 'a');
  EXPECT_EQ(ask(post("/echo", kChunked, chunk(fits) + "0\r\n\r\n")).status(), 200);
  EXPECT_EQ(ask(post("/echo", kChunked, chunk(half) + chunk(half) + "0\r\n\r\n")).status(), 200);
  EXPECT_EQ(ask(post("/echo", kChunked, chunk(too_much) + "0\r\n\r\n")).body, text);
  EXPECT_EQ(ask(post("/echo", kChunked, chunk(half) + chunk(half) + chunk("a") + "0\r\n\r\n")).body,
            text);
}

TEST_F(ServerTest, SurvivesABodyThatComesByteByByte) {
  start();
  RawClient client(port_);
  for (const char c : post("/echo", kChunked, chunk("ab") + chunk("c") + "0\r\n\r\n")) {
    client.send(std::string(1, c));
  }
  EXPECT_EQ(client.read().body, "POST /echo  abc");
}

TEST_F(ServerTest, WantsALengthForABody) {
  start();
  expect_refusal(post("/echo", "", "{}"), 411);
  EXPECT_EQ(ask(post("/echo", "Content-Length: 0\r\n", "")).status(), 200);
}

TEST_F(ServerTest, SaysContinueOnlyForABodyThatItWants) {
  start();
  RawClient client(port_);
  client.send(post("/echo", "Expect: 100-continue\r\nContent-Length: 3\r\n", ""));
  EXPECT_EQ(client.read(RawClient::Body::none).status(), 100);
  client.send("abc");
  EXPECT_EQ(client.read().body, "POST /echo  abc");
  EXPECT_EQ(ask(post("/echo", "Expect: 100-continue\r\nContent-Length: 100001\r\n", "")).status(),
            413);
  EXPECT_EQ(ask(post("/echo", "Expect: magic\r\nContent-Length: 1\r\n", "a")).status(), 417);
}

TEST_F(ServerTest, SpeaksTheOldVersionToo) {
  start();
  RawClient client(port_);
  client.send("GET /echo HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(client.read().field("Connection"), "keep-alive");
  client.send("GET /echo HTTP/1.0\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(client.read().field("Connection"), "close");
  EXPECT_TRUE(client.at_end());
}

TEST_F(ServerTest, ClosesWhenTheClientAsksForIt) {
  start();
  RawClient client(port_);
  client.send(get("/echo", "Connection: close\r\n"));
  EXPECT_EQ(client.read().field("Connection"), "close");
  EXPECT_TRUE(client.at_end());
}

TEST_F(ServerTest, AFailureOfAHandlerSaysNothingOfItsInside) {
  start();
  RawClient client(port_);
  client.send(get("/broken") + get("/echo"));
  const RawResponse response = client.read();
  EXPECT_EQ(response.status(), 500);
  EXPECT_EQ(response.body, R"({"error":"internal error"})");
  EXPECT_EQ(client.read().status(), 200) << "the connection goes on";
}

TEST_F(ServerTest, SendsALargeAnswerWhole) {
  start();
  const RawResponse response = ask(get("/large"));
  EXPECT_EQ(response.body.size(), 25'000'000U);
  EXPECT_EQ(response.body.find_first_not_of('x'), std::string::npos);
}

TEST_F(ServerTest, TellsTheHandlerWhenTheClientCloses) {
  start();
  RawClient client(port_);
  client.send(get("/hang"));
  ASSERT_TRUE(events_.await("running"));
  client.close();
  EXPECT_TRUE(events_.await("left"));
  EXPECT_TRUE(events_.await("served /hang 0"));
}

TEST_F(ServerTest, TellsTheHandlerWhenTheClientResets) {
  start();
  RawClient client(port_);
  client.send(get("/hang"));
  ASSERT_TRUE(events_.await("running"));
  client.reset();
  EXPECT_TRUE(events_.await("left"));
}

TEST_F(ServerTest, SeesTheLeavingBehindPipelinedRequests) {
  start();
  RawClient client(port_);
  client.send(get("/hang") + get("/echo") + get("/echo"));
  ASSERT_TRUE(events_.await("running"));
  client.send(std::string(100'000, 'x'));
  client.close();
  EXPECT_TRUE(events_.await("left"));
}

TEST_F(ServerTest, ARequestThatIsReadAheadIsAnsweredLater) {
  start();
  RawClient first(port_);
  first.send(get("/hang"));
  ASSERT_TRUE(events_.await("running"));
  EXPECT_EQ(ask(get("/echo")).status(), 200) << "other clients do not wait";
  first.close();
  EXPECT_TRUE(events_.await("left"));
}

TEST_F(ServerTest, ClosingTheServerEndsHandlersThatRun) {
  start();
  RawClient client(port_);
  client.send(get("/hang"));
  ASSERT_TRUE(events_.await("running"));
  stop();
  EXPECT_TRUE(events_.await("left"));
  EXPECT_EQ(client.read().head, "");
}

TEST_F(ServerTest, DoesNotWaitForeverForAHead) {
  start({.head_time = 100ms, .idle_time = 100ms});
  expect_refusal("GET /echo HTTP/1.1\r\nHost: loc", 408);
  RawClient silent(port_);
  EXPECT_TRUE(silent.at_end());
  RawClient idle(port_);
  idle.send(get("/echo"));
  EXPECT_EQ(idle.read().status(), 200);
  EXPECT_TRUE(idle.at_end());
}

TEST_F(ServerTest, DoesNotWaitForeverForABody) {
  start({.body_grace = 100ms});
  expect_refusal(post("/echo", "Content-Length: 3\r\n", "a"), 408);
  expect_refusal(post("/echo", kChunked, "3\r\na"), 408);
}

TEST_F(ServerTest, GivesUpOnAClientThatDoesNotRead) {
  start({.write_progress_time = 100ms});
  RawClient client(port_);
  client.send(get("/large"));
  EXPECT_TRUE(events_.await("served /large 200"));
  for (bool gone = false; !gone;) on_server([&] { gone = server_->connections() == 0; });
}

TEST_F(ServerTest, RefusesConnectionsBeyondTheLimitAndRecovers) {
  start({.connections_max = 2});
  auto first = std::make_unique<RawClient>(port_);
  RawClient second(port_);
  for (RawClient* client : {first.get(), &second}) {
    client->send(get("/echo"));
    EXPECT_EQ(client->read().status(), 200);
  }
  RawClient third(port_);
  third.send(get("/echo"));
  const RawResponse refused = third.read();
  EXPECT_EQ(refused.status(), 503);
  EXPECT_EQ(refused.field("Retry-After"), "1");
  EXPECT_EQ(refused.body, R"({"error":"too many connections - try again shortly"})");
  EXPECT_TRUE(third.at_end());
  third.close();
  first.reset();
  for (int status = 503; status != 200;) status = ask(get("/echo")).status();
}

TEST_F(ServerTest, WaitsForADescriptorInsteadOfSpinning) {
  start();
  RawClient client;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const Fd next(::dup(client.fd()));  // the first free number: from here on none is allowed
  rlimit none_left = before;
  none_left.rlim_cur = static_cast<rlim_t>(next.get());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none_left), 0);
  client.connect(port_);
  client.send(get("/echo"));
  clock_t used = 0;
  // Long enough for the pause between two attempts to reach its full second.
  const auto wait = std::make_shared<boost::asio::steady_timer>(io_);
  std::promise<void> waited;
  on_server([&] {
    used = std::clock();
    wait->expires_after(1500ms);
    wait->async_wait([&](const boost::system::error_code&) { waited.set_value(); });
  });
  waited.get_future().wait();
  EXPECT_LT(std::clock() - used, CLOCKS_PER_SEC / 2);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(client.read().status(), 200);
}

TEST_F(ServerTest, RefusesLargeBodiesThatWouldFillTheMemory) {
  start({.body_grace = 60s, .bodies_bytes_max = 3_MiB});
  const std::string large = post("/huge", "Content-Length: 2097152\r\n", std::string(2_MiB, 'a'));
  RawClient announced(port_);
  announced.send(post("/huge", "Expect: 100-continue\r\nContent-Length: 3145728\r\n", ""));
  EXPECT_EQ(announced.read(RawClient::Body::none).status(), 100);
  // What is announced and does not come keeps nobody out for long.
  for (int status = 503; status == 503;) status = ask(large).status();
  RawClient first(port_);
  first.send(post("/hang", "Content-Length: 2097152\r\n", std::string(2_MiB, 'a')));
  ASSERT_TRUE(events_.await("running"));
  EXPECT_EQ(ask(large).status(), 503);
  EXPECT_EQ(ask(post("/huge", "Content-Length: 5\r\n", "small")).status(), 200);
  first.close();
  ASSERT_TRUE(events_.await("served /hang 0"));
  EXPECT_EQ(ask(large).status(), 200);
}

TEST_F(ServerTest, HoldsOnlySoMuchForClientsThatDoNotRead) {
  start({.answers_bytes_max = 60'000'000});
  std::vector<std::unique_ptr<RawClient>> idle;
  for (int i = 0; i < 3; ++i) {
    idle.push_back(std::make_unique<RawClient>(port_));
    idle.back()->send(get("/large"));
    // So that their answers begin in this order.
    for (bool begun = false; !begun;) {
      pollfd readable{.fd = idle.back()->fd(), .events = POLLIN, .revents = 0};
      begun = ::poll(&readable, 1, 20'000) == 1;
    }
  }
  EXPECT_EQ(ask(get("/echo")).status(), 200);
  EXPECT_LT(idle[0]->read().body.size(), 25'000'000U) << "the first had to make room";
  EXPECT_EQ(idle[1]->read().body.size(), 25'000'000U);
  EXPECT_EQ(idle[2]->read().body.size(), 25'000'000U);
}

TEST_F(ServerTest, ALargeBodyNeedsNoRoomWhileItsAnswerIsRead) {
  start({.bodies_bytes_max = 21_MiB});
  const std::string large(20_MiB, 'a');
  RawClient slow(port_);
  slow.send(post("/huge", "Content-Length: 20971520\r\n", large));
  pollfd readable{.fd = slow.fd(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&readable, 1, 20'000), 1);
  EXPECT_EQ(ask(post("/huge", "Content-Length: 20971520\r\n", large)).status(), 200);
  EXPECT_EQ(slow.read().status(), 200);
}

TEST_F(ServerTest, DrainEndsIdleConnectionsAndStillAnswersNewOnes) {
  start();
  RawClient idle(port_);
  idle.send(get("/echo"));
  EXPECT_EQ(idle.read().status(), 200);
  RawClient busy(port_);
  busy.send("GET /echo HTT");
  on_server([this] { server_->drain(); });
  EXPECT_TRUE(idle.at_end());
  busy.send("P/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(busy.read().field("Connection"), "close");
  EXPECT_EQ(ask(get("/echo")).status(), 200);
  on_server([this] { server_->stop_accepting(); });
  RawClient late(port_);
  EXPECT_FALSE(late.connected());
}

TEST_F(ServerTest, SaysWhenItsPortIsTaken) {
  start();
  Server second(io_, clock_, random_, {.address = {.port = port_}}, Router({}));
  const Status status = second.listen();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::address_in_use);
}

}  // namespace
}  // namespace hutch::http
