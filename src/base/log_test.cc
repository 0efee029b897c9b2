#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/json.hpp>
#include <cmath>

#include "base/sys.h"

namespace hutch {
namespace {

namespace json = boost::json;

class LogTest : public testing::Test {
 protected:
  LogTest() : pipe_(sys::pipe().value()) {
    EXPECT_TRUE(sys::set_nonblocking(pipe_.read.get()));
    clock_.advance(std::chrono::milliseconds(1'700'000'000'042 - clock_.wall_ms()));
  }

  LogOptions options() const { return {.fd = pipe_.write.get()}; }

  // What was written since the last call.
  std::string read() {
    std::string text;
    std::array<std::byte, 8192> chunk{};
    for (;;) {
      const sys::ReadResult got = sys::read_some(pipe_.read.get(), chunk).value();
      if (got.size == 0) return text;
      text.append(reinterpret_cast<const char*>(chunk.data()), got.size);
    }
  }
  json::object read_line() {
    const std::string text = read();
    EXPECT_TRUE(text.ends_with("}\n")) << text;
    return json::parse(text).as_object();
  }

  FakeClock clock_;
  sys::Pipe pipe_;
};

TEST_F(LogTest, OneObjectALine) {
  Log log(clock_, options());
  log.info("ready", "the listeners are open",
           {{"port", 8700}, {"ratio", 0.5}, {"cold", false}, {"name", std::string("a")}});
  EXPECT_EQ(read(), R"({"time":"2023-11-14T22:13:20.042Z","level":"info","process":"server",)"
                    R"("event":"ready","message":"the listeners are open",)"
                    R"("port":8700,"ratio":0.5,"cold":false,"name":"a"})"
                    "\n");
}

TEST_F(LogTest, WarningsNameTheirPlace) {
  Log log(clock_, options());
  log.warn("odd", "something is odd");
  EXPECT_THAT(json::value_to<std::string>(read_line().at("source")),
              testing::StartsWith("src/base/log_test.cc:"));
}

TEST_F(LogTest, LevelsBelowTheChosenOneAreSilent) {
  Log log(clock_, options());
  log.debug("detail", "nobody asked");
  EXPECT_EQ(read(), "");
}

TEST_F(LogTest, ControlsAreEscapedAndBadBytesRepaired) {
  Log log(clock_, options());
  log.info("name", "a\x1b[31m\n\x7f\xC2\x9B", {{"bytes", "\xff\"\\\xC3\xA9\xE2\x82"}});
  const std::string text = read();
  EXPECT_THAT(text, testing::HasSubstr(R"("message":"a\u001b[31m\u000a\u007f\u009b")"));
  EXPECT_THAT(text, testing::HasSubstr("\"bytes\":\"\xEF\xBF\xBD\\\"\\\\\xC3\xA9\xEF\xBF\xBD"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST_F(LogTest, SurrogatesAndOverlongFormsAreNotUtf8) {
  Log log(clock_, options());
  for (const char* bad : {"\xED\xA0\x80", "\xC0\x80", "\xE0\x80\x80", "\xF5\x80\x80\x80"}) {
    log.info("name", bad);
    EXPECT_THAT(read(), testing::HasSubstr("\"message\":\"\xEF\xBF\xBD")) << bad;
  }
}

TEST_F(LogTest, ALineNeverExceedsWhatAPipeTakesAtOnce) {
  Log log(clock_, options());
  const std::string big(100'000, '\x01');
  log.error("big", big, {{"a", big}, {"b", big}, {"c", big}, {"d", big}});
  const std::string text = read();
  EXPECT_LE(text.size(), 4096U);
  const json::object line = json::parse(text).as_object();
  EXPECT_TRUE(line.at("fields_cut").as_bool());
  EXPECT_TRUE(line.contains("source"));
}

TEST_F(LogTest, NumbersThatJsonCannotSayAreNull) {
  Log log(clock_, options());
  log.info("n", "m", {{"x", std::nan("")}});
  EXPECT_TRUE(read_line().at("x").is_null());
}

TEST_F(LogTest, ABlockedReaderLosesLinesAndIsToldHowMany) {
  Log log(clock_, options());
  ASSERT_TRUE(sys::set_nonblocking(pipe_.write.get()));
  const std::vector<std::byte> filler(4096);
  while (sys::write_some(pipe_.write.get(), filler).value() > 0) {
  }
  log.info("lost", "nobody reads");
  log.info("lost", "nobody reads");
  read();
  log.info("back", "somebody reads");
  EXPECT_EQ(read_line().at("lines_lost").as_int64(), 2);
  log.info("more", "and goes on");
  EXPECT_FALSE(read_line().contains("lines_lost"));
}

TEST_F(LogTest, AForkedProcessSpeaksUnderItsOwnName) {
  Log log(clock_, options());
  const pid_t child = ::fork();
  if (child == 0) {
    log.speak_as("warden");
    log.info("hello", "from the child");
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(read_line().at("process").as_string(), "warden");
}

}  // namespace
}  // namespace hutch
