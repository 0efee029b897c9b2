#include "cli/event_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace hutch::cli {
namespace {

using testing::ElementsAre;

// The events of a text that arrives in pieces of this size, as "name|data".
std::vector<std::string> events_of(std::string_view text, std::size_t piece) {
  std::vector<std::string> seen;
  EventStream stream;
  const auto note = [&](const ServerEvent& event) {
    seen.push_back(event.name + "|" + event.data);
    return Status{};
  };
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
    EXPECT_TRUE(stream.feed(text.substr(0, piece), note));
  }
  return seen;
}

TEST(EventStream, ReadsEventsHoweverTheyAreCut) {
  constexpr std::string_view kText =
      "id: 1\nevent: start\ndata: {\"a\":1}\n\n"
      ": still running\n\n"
      "id: 2\r\nevent:stdout\r\ndata:{\"text\":\"x\"}\r\n\r\n"
      "event: exit\rdata: {}\r\r";
  for (std::size_t piece = 1; piece <= kText.size(); ++piece) {
    EXPECT_THAT(events_of(kText, piece),
                ElementsAre("start|{\"a\":1}", "stdout|{\"text\":\"x\"}", "exit|{}"))
        << piece;
  }
}

TEST(EventStream, JoinsLinesOfDataAndKeepsAllButOneSpace) {
  EXPECT_THAT(events_of("data: one\ndata:  two\ndata\n\n", 100),
              ElementsAre("message|one\n two\n"));
  EXPECT_THAT(events_of("data:\n\n", 100), ElementsAre("message|"));
}

TEST(EventStream, LeavesOutWhatHasNoDataAndWhatHasNoEnd) {
  EXPECT_THAT(events_of("event: start\n\nfoo: bar\nretry: 3\n\n: comment\n\n", 100), ElementsAre());
  EXPECT_THAT(events_of("event: exit\ndata: {}\n", 100), ElementsAre());
  // A name without data does not stick to the next event.
  EXPECT_THAT(events_of("event: start\n\ndata: x\n\n", 100), ElementsAre("message|x"));
}

TEST(EventStream, SkipsAByteOrderMark) {
  EXPECT_THAT(events_of("\xef\xbb\xbf"
                        "data: x\n\n",
                        1),
              ElementsAre("message|x"));
}

TEST(EventStream, IsBounded) {
  EventStream stream(100);
  const auto fine = [](const ServerEvent&) { return Status{}; };
  EXPECT_TRUE(stream.feed("data: " + std::string(90, 'x') + "\n\n", fine));
  const Status line = stream.feed("data: " + std::string(200, 'x'), fine);
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().code, ErrorCode::too_large);
  EventStream lines(100);
  Status many;
  for (int i = 0; i < 100 && many; ++i) many = lines.feed("data: xxxxxxxx\n", fine);
  EXPECT_FALSE(many);
}

TEST(EventStream, StopsAtTheFirstFailure) {
  EventStream stream;
  int calls = 0;
  const Status status = stream.feed("data: 1\n\ndata: 2\n\n", [&](const ServerEvent&) -> Status {
    ++calls;
    return fail(ErrorCode::io, "full");
  });
  EXPECT_EQ(status.error().message, "full");
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace hutch::cli
