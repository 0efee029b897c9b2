#include "cli/run_request.h"

#include <gtest/gtest.h>

namespace hutch::cli {
namespace {

TEST(RunRequest, SaysOnlyWhatWasAskedFor) {
  EXPECT_EQ(encode({.code = "print(1)"}), R"-({"code":"print(1)","report":true})-");
  // The server refuses an empty program, and Python runs it.
  EXPECT_EQ(encode({}), R"({"code":"\n","report":true})");
}

TEST(RunRequest, SaysEverythingThatWasAskedFor) {
  EXPECT_EQ(encode({.code = "\"",
                    .timeout_s = 5,
                    .args = {"-x", "é"},
                    .files = {{"a/b", "hi"}, {"empty", ""}},
                    .image = "python"}),
            R"({"code":"\"","timeout_s":5,"image":"python","args":["-x","é"],)"
            R"("files":[{"path":"a/b","content_b64":"aGk="},{"path":"empty","content_b64":""}],)"
            R"("report":true})");
}

}  // namespace
}  // namespace hutch::cli
