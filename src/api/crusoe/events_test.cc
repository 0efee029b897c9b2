#include "api/crusoe/events.h"

#include <gtest/gtest.h>

namespace hutch::api::crusoe {
namespace {

using engine::OutputStream;

// What events these calls make, without ids: "stdout {...} stderr {...} ".
class EventsTest : public testing::Test {
 protected:
  std::string taken() {
    std::string shown;
    std::string_view rest = text_;
    while (!rest.empty()) {
      const std::string id = "id: " + std::to_string(++last_) + "\nevent: ";
      EXPECT_EQ(rest.substr(0, id.size()), id);
      rest.remove_prefix(id.size());
      const std::size_t line = rest.find("\ndata: ");
      const std::size_t end = rest.find("\n\n");
      shown += std::string(rest.substr(0, line)) + " " +
               std::string(rest.substr(line + 7, end - line - 7)) + " ";
      rest.remove_prefix(end + 2);
    }
    text_.clear();
    return shown;
  }
  void out(std::string bytes) { events_.output(text_, {OutputStream::out, std::move(bytes)}); }
  void err(std::string bytes) { events_.output(text_, {OutputStream::err, std::move(bytes)}); }

  EventWriter events_;
  std::string text_;
  int last_ = 0;
};

TEST_F(EventsTest, NumbersThemFromOne) {
  events_.start(text_, "sandbox-a");
  out("x\ny");
  events_.end_output(text_, "");
  events_.error(text_, R"({"error":"e"})");
  EXPECT_EQ(text_,
            "id: 1\nevent: start\ndata: {\"sandbox_id\":\"sandbox-a\"}\n\n"
            "id: 2\nevent: stdout\ndata: {\"text\":\"x\\ny\"}\n\n"
            "id: 3\nevent: error\ndata: {\"error\":\"e\"}\n\n");
}

TEST_F(EventsTest, NoByteOfAPieceBreaksALine) {
  std::string every;
  for (int i = 0; i < 128; ++i) every += static_cast<char>(i);
  out(every + "\xE2\x80\xA8\xC2\x85");
  EXPECT_EQ(std::count(text_.begin(), text_.end(), '\n'), 4);
  EXPECT_EQ(std::count(text_.begin(), text_.end(), '\r'), 0);
}

TEST_F(EventsTest, KeepsTheBeginningOfACharacterForTheNextPiece) {
  out("a\xE2\x82");
  EXPECT_EQ(taken(), R"(stdout {"text":"a"} )");
  err("\xF0");
  EXPECT_EQ(taken(), "");
  out("\xAC");
  EXPECT_EQ(taken(), "stdout {\"text\":\"\xE2\x82\xAC\"} ");
  err("\x9F\x98");
  err("\x80!");
  EXPECT_EQ(taken(), "stderr {\"text\":\"\xF0\x9F\x98\x80!\"} ");
}

TEST_F(EventsTest, WhatIsNoTextIsBase64) {
  out("\xFF");
  out("\xE2\x82");
  EXPECT_EQ(taken(), R"(stdout {"b64":"/w=="} )");
  out("x");
  EXPECT_EQ(taken(), R"(stdout {"b64":"4oJ4"} )") << "it was no character after all";
}

TEST_F(EventsTest, TheEndBringsWhatWasKept) {
  out("\xE2\x82");
  err("\xC3");
  EXPECT_EQ(taken(), "");
  events_.end_output(text_, "timed out after 1s");
  EXPECT_EQ(taken(), R"(stdout {"b64":"4oI="} stderr {"b64":"ww=="} )"
                     R"(stderr {"text":"\ntimed out after 1s"} )");
}

TEST_F(EventsTest, OurLineStandsOnALineOfItsOwn) {
  events_.end_output(text_, "ours");
  EXPECT_EQ(taken(), R"(stderr {"text":"ours"} )");
  err("theirs\n");
  events_.end_output(text_, "ours");
  EXPECT_EQ(taken(), R"(stderr {"text":"theirs\n"} stderr {"text":"ours"} )");
  err("\nunfinished");
  out("other\n");
  events_.end_output(text_, "ours");
  EXPECT_EQ(taken(), R"(stderr {"text":"\nunfinished"} stdout {"text":"other\n"} )"
                     R"(stderr {"text":"\nours"} )");
}

TEST_F(EventsTest, AFileIsOneEvent) {
  events_.file(text_, {"d/\n", "text/plain", "a"});
  EXPECT_EQ(taken(), R"(file {"path":"d/\n","size":1,"type":"text/plain","content_b64":"YQ=="} )");
}

TEST_F(EventsTest, TheExitLeavesOutWhatCameBefore) {
  ExecuteAnswer answer{.sandbox_id = "s", .stdout_text = "o", .stderr_text = "e"};
  answer.files.emplace();
  answer.files_deleted.emplace();
  answer.end = AnswerEnd{.cause = "exited"};
  events_.exit(text_, answer);
  EXPECT_EQ(taken(), R"(exit {"sandbox_id":"s","exit_code":0,"duration_ms":0,)"
                     R"("files_deleted":[],"end":{"cause":"exited","cpu_ms":0}} )");
}

}  // namespace
}  // namespace hutch::api::crusoe
