// Every tests/api/<door>/*.http against a real listener on loopback, with the fake engine behind
// it. UPDATE_GOLDEN=1 writes what came back into the files.
//
// A file is: a sentence, "--- setup NAME" where the server is not a fresh one with a full pool,
// "--- request" and "--- response". Heads have plain line ends there and CR LF on the wire; a
// request with a body and no length of its own gets its Content-Length. Ids, durations and the date
// of answers are masked with "#".
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "http/raw_client.h"
#include "running_door.h"

namespace hutch {
namespace {

namespace fs = std::filesystem;

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

}  // namespace
}  // namespace hutch
