#include "api/crusoe/errors.h"

#include <gtest/gtest.h>

namespace hutch::api::crusoe {
namespace {

http::Response of(ErrorCode code, std::string message = "/secret/path") {
  return error_answer({code, Step::none, 0, std::move(message)});
}

TEST(Errors, SayTheDocumentedSentences) {
  EXPECT_EQ(of(ErrorCode::bad_request, "code is required").status, 400);
  EXPECT_EQ(of(ErrorCode::bad_request, "code is required").body, R"({"error":"code is required"})");
  EXPECT_EQ(
      of(ErrorCode::rejected, "file path escapes working directory: '../x'").body,
      R"({"error":"the sandbox returned HTTP 400: file path escapes working directory: '../x'"})");
  EXPECT_EQ(of(ErrorCode::rejected).status, 502);
  EXPECT_EQ(of(ErrorCode::unreadable_reply).body,
            R"({"error":"the sandbox returned a response that could not be read"})");
  EXPECT_EQ(of(ErrorCode::unreadable_reply).status, 502);
  EXPECT_EQ(of(ErrorCode::busy).body,
            R"({"error":"no sandbox is available right now - try again shortly"})");
}

TEST(Errors, ThatPassSayWhenToTryAgain) {
  for (const ErrorCode code : {ErrorCode::busy, ErrorCode::draining}) {
    const auto response = of(code);
    EXPECT_EQ(response.status, 503);
    ASSERT_EQ(response.fields.size(), 1U);
    EXPECT_EQ(response.fields[0].name, "Retry-After");
    EXPECT_EQ(response.fields[0].value, "1");
  }
}

TEST(Errors, OfOurOwnTellNothingOfTheInside) {
  for (const ErrorCode code :
       {ErrorCode::setup_failed, ErrorCode::sandbox_lost, ErrorCode::warden_gone, ErrorCode::io,
        ErrorCode::disk_full, ErrorCode::no_image, ErrorCode::internal, ErrorCode::not_found}) {
    const auto response = of(code);
    EXPECT_EQ(response.status, 502);
    EXPECT_TRUE(response.body.starts_with(R"({"error":"sandbox execution failed: )"));
    EXPECT_EQ(response.body.find("secret"), std::string::npos);
  }
}

TEST(Errors, NobodyReadsTheAnswerToACancelledRun) {
  EXPECT_TRUE(of(ErrorCode::cancelled).abandoned);
}

}  // namespace
}  // namespace hutch::api::crusoe
