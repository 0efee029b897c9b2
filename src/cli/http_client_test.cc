#include "cli/http_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <functional>
#include <thread>

#include "base/sys.h"
#include "base/units.h"

namespace hutch::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view kHello =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Request-Id: abc\r\n"
    "Content-Length: 5\r\n\r\nhello";

// A server that takes one request on the other end of a socket pair and does as the test says.
class Served {
 public:
  using Behaviour = std::function<void(int socket, const std::string& request)>;

  explicit Served(Behaviour behaviour, HttpClientOptions options = {}) {
    auto pair = sys::socket_pair(SOCK_STREAM).value();
    server_ = std::thread([end = std::move(pair.second), behaviour] {
      std::string request;
      std::array<std::byte, 65536> part{};
      while (request.find("\r\n\r\n") == std::string::npos) {
        const auto got = sys::read_some(end.get(), part);
        if (!got || got->size == 0) return;
        request.append(reinterpret_cast<const char*>(part.data()), got->size);
      }
      behaviour(end.get(), request);
    });
    client_.emplace(std::move(pair.first), "http://served:1", clock_, std::move(options));
  }
  ~Served() {
    client_.reset();
    server_.join();
  }
  HttpClient& client() { return *client_; }

 private:
  SystemClock clock_;
  std::optional<HttpClient> client_;
  std::thread server_;
};

Served::Behaviour says(std::string text) {
  return [text = std::move(text)](int socket, const std::string&) {
    ignore_error(sys::write_all(socket, text));
  };
}

TEST(ServerUrl, NamesHostAndPort) {
  const ServerAddress plain = parse_server_url("http://127.0.0.1:8700/").value();
  EXPECT_EQ(plain.host, "127.0.0.1");
  EXPECT_EQ(plain.port, 8700);
  EXPECT_EQ(plain.url, "http://127.0.0.1:8700");
  const ServerAddress six = parse_server_url("http://[::1]:8700").value();
  EXPECT_EQ(six.host, "::1");
  EXPECT_EQ(six.port, 8700);
  EXPECT_EQ(parse_server_url("http://box.example").value().port, 80);
}

TEST(ServerUrl, RefusesWhatIsNone) {
  for (const char* text : {"", "127.0.0.1:8700", "ftp://a", "http://", "http://a:0",
                           "http://a:70000", "http://a:x", "http://a/b", "http://[::1",
                           "http://a b", "http://a:1:2", "http://user@a", "http://a\r\n"}) {
    const auto address = parse_server_url(text);
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.error().code, ErrorCode::config);
    EXPECT_THAT(address.error().message, HasSubstr("write it as http://HOST:PORT"));
  }
  EXPECT_THAT(parse_server_url("https://a").error().message, HasSubstr("TLS"));
}

TEST(HttpClient, SendsARequestAndTakesItsAnswer) {
  std::string seen;
  Served served([&](int socket, const std::string& request) {
    seen = request;
    ignore_error(sys::write_all(socket, kHello));
  });
  const auto answer = served.client().exchange(
      {.method = "POST", .target = "/v1/execute", .body = "{}", .bearer = "key"}, 100);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->content_type, "application/json");
  EXPECT_EQ(answer->request_id, "abc");
  EXPECT_EQ(answer->body, "hello");
  EXPECT_THAT(seen, StartsWith("POST /v1/execute HTTP/1.1\r\nHost: served:1\r\n"));
  EXPECT_THAT(seen, HasSubstr("Authorization: Bearer key\r\n"));
  EXPECT_THAT(seen, HasSubstr("Content-Length: 2\r\n\r\n"));
}

TEST(HttpClient, TakesAChunkedBodyInPieces) {
  Served served(
      says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
           "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nTrailer: 1\r\n\r\n"));
  ASSERT_TRUE(served.client().begin({}));
  std::string body;
  while (served.client().read_body(body).value()) continue;
  EXPECT_EQ(body, "abcdefg");
}

TEST(HttpClient, RefusesAnAnswerBeyondTheLimit) {
  Served served(says(std::string(kHello)));
  EXPECT_EQ(served.client().exchange({}, 4).error().code, ErrorCode::too_large);
}

TEST(HttpClient, TakesNoRoomByWhatIsAnnounced) {
  Served served(says("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\nabc"));
  EXPECT_THAT(served.client().exchange({}, 100).error().message, HasSubstr("before the end"));
}

TEST(HttpClient, UnderstandsAnAnswerThatComesBeforeTheRequestWasRead) {
  Served served([](int socket, const std::string&) {
    ignore_error(sys::write_all(socket, "HTTP/1.1 413 X\r\nContent-Length: 3\r\n\r\nbig"));
    ::shutdown(socket, SHUT_WR);
    std::array<std::byte, 65536> part{};
    for (auto got = sys::read_some(socket, part); got && got->size > 0;) {
      got = sys::read_some(socket, part);
    }
  });
  const auto answer =
      served.client().exchange({.method = "POST", .body = std::string(32_MiB, 'x')}, 1000);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 413);
  EXPECT_EQ(answer->body, "big");
}

TEST(HttpClient, NamesAnEndThatComesTooSoonAndWhatIsNoHttp) {
  for (const char* text :
       {"", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"}) {
    Served served(says(text));
    EXPECT_THAT(served.client().exchange({}, 100).error().message,
                HasSubstr("closed the connection before the end"))
        << text;
  }
  Served other(says("SSH-2.0-OpenSSH\r\n\r\n"));
  EXPECT_THAT(other.client().exchange({}, 100).error().message, HasSubstr("is not HTTP"));
}

TEST(HttpClient, DoesNotWaitForeverForTheSilent) {
  Served served(
      [](int socket, const std::string&) {
        std::byte one{};
        ignore_error(sys::read_some(socket, std::span(&one, 1)));
      },
      {.silence = std::chrono::milliseconds(30)});
  const auto answer = served.client().exchange({}, 100);
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("was silent"));
}

TEST(HttpClient, IsInterruptedAndWaitsForTheServerToLetGo) {
  const auto pipe = sys::pipe().value();
  bool saw_the_end = false;
  {
    Served served(
        [&](int socket, const std::string&) {
          ignore_error(sys::write_all(pipe.write.get(), "!"));
          std::byte one{};
          const auto got = sys::read_some(socket, std::span(&one, 1));
          saw_the_end = got && got->size == 0;
        },
        {.stop_fd = pipe.read.get()});
    EXPECT_EQ(served.client().exchange({}, 100).error().code, ErrorCode::cancelled);
    std::byte taken{};
    ignore_error(sys::read_some(pipe.read.get(), std::span(&taken, 1)));
    EXPECT_TRUE(served.client().leave(std::chrono::seconds(20)));
  }
  EXPECT_TRUE(saw_the_end);
}

TEST(HttpClient, TicksWhileItWaits) {
  int ticks = 0;
  const auto pipe = sys::pipe().value();
  Served served(
      [&](int socket, const std::string&) {
        std::byte one{};
        ignore_error(sys::read_some(pipe.read.get(), std::span(&one, 1)));
        ignore_error(sys::write_all(socket, kHello));
      },
      {.tick = [&] {
        if (++ticks == 2) ignore_error(sys::write_all(pipe.write.get(), "!"));
      }});
  ASSERT_TRUE(served.client().exchange({}, 100));
  EXPECT_EQ(ticks, 2);
}

TEST(HttpClient, SaysThatNobodyListens) {
  const SystemClock clock;
  // Port 1 of the loopback address: reserved, and served by nobody.
  const auto client =
      HttpClient::connect(parse_server_url("http://127.0.0.1:1").value(), clock, {});
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().sys_errno, ECONNREFUSED);
  EXPECT_THAT(describe(client.error()), HasSubstr("cannot reach http://127.0.0.1:1"));
}

}  // namespace
}  // namespace hutch::cli
