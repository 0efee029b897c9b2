// POST /v1/execute as a conversation: who leaves, who comes again, who is slow.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>

#include "http/raw_client.h"
#include "running_door.h"

namespace hutch {
namespace {

TEST(ExecuteDoor, AClientThatLeavesEndsItsRunAtOnce) {
  Running running("");
  for (const bool by_reset : {false, true}) {
    http::RawClient client(running.port(""));
    client.send(to_wire("POST /v1/execute HTTP/1.1\nHost: localhost\n\n{\"code\":\"#fake hang\"}"));
    while (running.numbers().in_flight == 0) std::this_thread::yield();
    by_reset ? client.reset() : client.close();
    while (running.numbers().in_flight != 0) std::this_thread::yield();
  }
}

TEST(ExecuteDoor, OneConnectionRunsOneProgramAfterTheOther) {
  Running running("");
  http::RawClient client(running.port(""));
  std::string ids;
  std::string all;
  for (int i = 0; i < 5; ++i) {
    all += to_wire("POST /v1/execute HTTP/1.1\nHost: localhost\n\n{\"code\":\"print(2**32)\"}");
  }
  client.send(all);
  for (int i = 0; i < 5; ++i) {
    const auto response = client.read();
    EXPECT_EQ(response.status(), 200);
    const std::string id = response.body.substr(0, 35);
    EXPECT_EQ(ids.find(id), std::string::npos) << "each run has a sandbox of its own";
    ids += id;
  }
}

std::string streamed(const std::string& code) {
  return to_wire("POST /v1/execute HTTP/1.1\nHost: localhost\nAccept: text/event-stream\n\n" +
                 ("{\"code\":\"" + code + "\"}"));
}

// Reads on until the text has come.
void await_text(http::RawClient& client, const std::string& text) {
  std::string all;
  while (all.find(text) == std::string::npos) {
    const std::string chunk = client.read_chunk();
    ASSERT_FALSE(chunk.empty()) << all;
    all += chunk;
  }
}

// How much the pieces of a stream hold together, where each character is one byte.
std::size_t text_bytes(const std::string& body) {
  constexpr std::string_view kBefore = "{\"text\":\"";
  std::size_t bytes = 0;
  for (std::size_t at = 0; (at = body.find(kBefore, at)) != std::string::npos;) {
    at += kBefore.size();
    bytes += body.find('"', at) - at;
  }
  return bytes;
}

// A client that takes little, so that its server soon waits.
class SlowClient : public http::RawClient {
 public:
  explicit SlowClient(std::uint16_t port) {
    const int bytes = 65536;
    ::setsockopt(fd(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    connect(port);
  }
};

TEST(StreamedRun, APieceComesWhileTheProgramGoesOn) {
  Running running("");
  http::RawClient client(running.port(""));
  client.send(streamed("#fake stdout now\\n#fake hang"));
  EXPECT_EQ(client.read(http::RawClient::Body::none).status(), 200);
  await_text(client, R"({"text":"now\n"})");
  EXPECT_EQ(running.numbers().in_flight, 1U);
}

TEST(StreamedRun, SaysThatItStillRuns) {
  Running running("", std::chrono::milliseconds(10));
  http::RawClient client(running.port(""));
  client.send(streamed("#fake hang"));
  client.read(http::RawClient::Body::none);
  await_text(client, ": still running\n\n");
  await_text(client, ": still running\n\n");
}

TEST(StreamedRun, ASlowReaderHoldsNobodyElseUp) {
  Running running("");
  SlowClient client(running.port(""));
  client.send(streamed("#fake flood 20000000"));
  client.read(http::RawClient::Body::none);
  for (int i = 0; i < 20; ++i) {
    http::RawClient other(running.port(""));
    other.send(to_wire("POST /v1/execute HTTP/1.1\nHost: localhost\n\n{\"code\":\"pass\"}"));
    EXPECT_EQ(other.read().status(), 200);
  }
  EXPECT_EQ(running.numbers().in_flight, 1U) << "the program waits for its reader";
  std::string body;
  for (std::string chunk = client.read_chunk(); !chunk.empty(); chunk = client.read_chunk()) {
    body += chunk;
  }
  EXPECT_TRUE(client.whole());
  EXPECT_EQ(text_bytes(body), 20'000'000U);
  EXPECT_NE(body.find("\"stdout_bytes\":20000000,"), std::string::npos);
}

TEST(StreamedRun, AClientThatLeavesEndsItWhereverItStands) {
  Running running("");
  for (const char* code : {"#fake hang", "#fake flood 20000000"}) {
    for (const char* how : {"close", "reset", "half"}) {
      SlowClient client(running.port(""));
      client.send(streamed(code));
      client.read(http::RawClient::Body::none);
      EXPECT_EQ(running.numbers().in_flight, 1U) << code;
      if (*how == 'c') client.close();
      if (*how == 'r') client.reset();
      if (*how == 'h') client.half_close();
      while (running.numbers().in_flight != 0) std::this_thread::yield();
      while (running.connections() != 0) std::this_thread::yield();
    }
  }
}

TEST(StreamedRun, AClientThatLeavesBeforeItBeginsIsForgotten) {
  Running running("no sandbox can be made");
  http::RawClient client(running.port(""));
  client.send(streamed("pass"));
  client.close();
  while (running.connections() != 0) std::this_thread::yield();
}

TEST(StreamedRun, AServerThatStopsSaysSo) {
  Running running("");
  http::RawClient client(running.port(""));
  client.send(streamed("#fake stdout on\\n#fake hang"));
  client.read(http::RawClient::Body::none);
  await_text(client, R"({"text":"on\n"})");
  running.with_shots([](service::Shots& shots) {
    shots.drain([] {});
    shots.stop_now();
  });
  await_text(client,
             "event: error\ndata: {\"error\":\"the server is stopping - try again shortly\"}");
  EXPECT_EQ(client.read_chunk(), "");
  EXPECT_TRUE(client.whole());
}

TEST(StreamedRun, OneConnectionFollowsOneRunAfterTheOther) {
  Running running("");
  http::RawClient client(running.port(""));
  client.send(streamed("#fake stdout a") + streamed("#fake stdout b") + streamed(""));
  EXPECT_NE(client.read().body.find(R"({"text":"a\n"})"), std::string::npos);
  EXPECT_NE(client.read().body.find(R"({"text":"b\n"})"), std::string::npos);
  EXPECT_EQ(client.read().status(), 400);
}

}  // namespace
}  // namespace hutch
