// Every tests/api/<door>/*.http against a real listener on loopback, with the fake engine behind
// it. UPDATE_GOLDEN=1 writes what came back into the files.
//
// A file is: a sentence, "--- setup NAME" where the server is not a fresh one with a full pool,
// "--- request" and "--- response". Heads have plain line ends there and CR LF on the wire; a
// request with a body and no length of its own gets its Content-Length. Ids, durations and the date
// of answers are masked with "#".
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <filesystem>
#include <fstream>
#include <future>
#include <regex>
#include <sstream>
#include <thread>

#include "api/crusoe/routes.h"
#include "engine/fake_engine.h"
#include "http/raw_client.h"
#include "http/server.h"

namespace hutch {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

struct Golden {
  std::string comment;
  std::string setup;
  std::string request;
  std::string response;
};

std::string read_file(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

Golden parse(const std::string& text) {
  const std::size_t request = text.find("--- request\n");
  const std::size_t response = text.find("--- response\n");
  if (request == std::string::npos || response == std::string::npos) return {};
  Golden golden;
  golden.comment = text.substr(0, request);
  const std::size_t setup = golden.comment.find("--- setup ");
  if (setup != std::string::npos) {
    golden.setup = golden.comment.substr(setup + 10, golden.comment.find('\n', setup) - setup - 10);
  }
  golden.request = text.substr(request + 12, response - request - 12);
  golden.response = text.substr(response + 13);
  return golden;
}

// The bytes of the wire.
std::string to_wire(const std::string& request) {
  const std::size_t empty = request.find("\n\n");
  std::string head = request.substr(0, empty);
  std::string body = request.substr(std::min(request.size(), empty + 2));
  if (body.ends_with('\n')) body.pop_back();
  const bool framed = head.find("Content-Length:") != std::string::npos ||
                      head.find("Transfer-Encoding:") != std::string::npos;
  if (!body.empty() && !framed) head += "\nContent-Length: " + std::to_string(body.size());
  return std::regex_replace(head + "\n\n", std::regex("\n"), "\r\n") + body;
}

std::string masked(const http::RawResponse& response) {
  std::string head = std::regex_replace(response.head, std::regex("\r\n"), "\n");
  head = std::regex_replace(head, std::regex("X-Request-Id: [0-9a-f]{32}\n"), "X-Request-Id: #\n");
  head = std::regex_replace(head, std::regex("Date: [^\n]*\n"), "Date: #\n");
  std::string body =
      std::regex_replace(response.body, std::regex("\"sandbox-[a-z2-7]{10}\""), "\"sandbox-#\"");
  body = std::regex_replace(body, std::regex("\"duration_ms\":[0-9]+"), "\"duration_ms\":#");
  // The length of a masked body would tell how long the id and the duration were.
  if (body != response.body) {
    head = std::regex_replace(head, std::regex("Content-Length: [0-9]+\n"), "Content-Length: #\n");
  }
  return head + body + "\n";
}

engine::FakeEngineOptions small_streams() {
  engine::FakeEngineOptions options;
  options.limits.stream_bytes = 64;
  return options;
}

service::ShotsOptions short_waits() {
  service::ShotsOptions options;
  options.pool.wait = 50ms;
  return options;
}

// One fresh server with everything real but the engine.
class Running {
 public:
  explicit Running(const std::string& setup) {
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

  std::uint32_t connections() {
    std::promise<std::uint32_t> count;
    boost::asio::post(io_, [&] { count.set_value(server_.connections() + public_.connections()); });
    return count.get_future().get();
  }

 private:
  http::Router routes() {
    return api::crusoe::internal_routes(
        {.shots = shots_, .metrics = metrics_, .body_bytes_max = 4096, .draining = [this] {
           return draining_;
         }});
  }

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

std::vector<fs::path> golden_files() {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(HUTCH_SOURCE_DIR "/tests/api")) {
    if (entry.path().extension() == ".http") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

class GoldenTest : public testing::TestWithParam<fs::path> {};

TEST_P(GoldenTest, AnswersByteForByte) {
  const Golden golden = parse(read_file(GetParam()));
  ASSERT_FALSE(golden.request.empty()) << GetParam();
  Running running(golden.setup);
  http::RawClient client(running.port(golden.setup));
  client.send(to_wire(golden.request));
  const bool head_only = golden.request.starts_with("HEAD ");
  const auto response =
      client.read(head_only ? http::RawClient::Body::none : http::RawClient::Body::by_length);
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::ofstream(GetParam()) << golden.comment << "--- request\n"
                              << golden.request << "--- response\n"
                              << masked(response);
    return;
  }
  EXPECT_EQ(masked(response), golden.response);
}

INSTANTIATE_TEST_SUITE_P(Api, GoldenTest, testing::ValuesIn(golden_files()), [](const auto& param) {
  std::string name =
      param.param.parent_path().filename().string() + "_" + param.param.stem().string();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

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

}  // namespace
}  // namespace hutch
