#include "api/crusoe/convert.h"

#include <gtest/gtest.h>

namespace hutch::api::crusoe {
namespace {

using model::Cause;

service::ShotAnswer shot(model::Outcome outcome, std::string out = "", std::string err = "") {
  service::ShotAnswer answer{.sandbox_id = "sandbox-a"};
  answer.result.outcome = outcome;
  answer.result.out = {.head = out, .total_bytes = out.size()};
  answer.result.err = {.head = err, .total_bytes = err.size()};
  return answer;
}

ExecuteAnswer converted(model::Outcome outcome, std::string out = "", std::string err = "") {
  return to_answer(shot(outcome, std::move(out), std::move(err)), 5, Report::informative);
}

const model::Outcome kFine{.cause = Cause::exited};

// A stream of which `total` bytes were written and only these parts are kept.
std::string cut(std::string head, std::string tail, std::uint64_t total) {
  auto answer = shot(kFine);
  answer.result.out = {.head = head, .tail = tail, .total_bytes = total};
  answer.result.out.dropped_bytes = total - head.size() - tail.size();
  return to_answer(std::move(answer), 5, Report::informative).stdout_text;
}

TEST(ToShotSpec, HandsEverythingOn) {
  ExecuteRequest request{.code = "x", .timeout_s = 7};
  request.files = {{"a/./b", "1"}, {"c", "2"}};
  const auto spec = to_shot_spec(request);
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->code, "x");
  EXPECT_EQ(spec->timeout_s, 7U);
  ASSERT_EQ(spec->files.size(), 2U);
  EXPECT_EQ(spec->files[1].bytes, "2");
}

TEST(ToShotSpec, RefusesPathsAsTheSandboxWould) {
  for (const char* path : {"../x", "/etc/x", "a/../../x", "..", ".", ""}) {
    ExecuteRequest request{.code = "x"};
    request.files = {{"fine", ""}, {path, ""}};
    const auto spec = to_shot_spec(request);
    ASSERT_FALSE(spec) << path;
    EXPECT_EQ(spec.error().code, ErrorCode::rejected);
  }
  ExecuteRequest request{.code = "x"};
  request.files = {{"../etc/passwd", ""}};
  EXPECT_EQ(to_shot_spec(request).error().message,
            "file path escapes working directory: '../etc/passwd'");
  request.files = {{"d/x", ""}, {"d", ""}};
  EXPECT_EQ(to_shot_spec(request).error().code, ErrorCode::rejected);
}

TEST(ToAnswer, APlainEndSaysNothingMore) {
  const auto answer = converted({.cause = Cause::exited, .status = 3}, "out", "err");
  EXPECT_EQ(answer.exit_code, 3);
  EXPECT_EQ(answer.stdout_text, "out");
  EXPECT_EQ(answer.stderr_text, "err");
  EXPECT_FALSE(answer.files || answer.files_omitted || answer.files_deleted || answer.end ||
               answer.stdout_bytes || answer.stderr_bytes || answer.files_omitted_count);
}

TEST(ToAnswer, ATimeoutIsMinusOneAndALine) {
  const model::Outcome outcome{.cause = Cause::timeout, .by_signal = true, .status = 9, .limit = 5};
  EXPECT_EQ(converted(outcome).exit_code, -1);
  EXPECT_EQ(converted(outcome).stderr_text, "timed out after 5s");
  EXPECT_EQ(converted(outcome, "", "half").stderr_text, "half\ntimed out after 5s");
  EXPECT_EQ(converted(outcome, "", "line\n").stderr_text, "line\ntimed out after 5s");
  EXPECT_FALSE(converted(outcome).end);
}

TEST(ToAnswer, AMemoryKillIs137AndALineThatNamesTheLimit) {
  model::Outcome outcome{.cause = Cause::memory, .by_signal = true, .status = 9, .limit = 512_MiB};
  outcome.memory_peak_bytes = 512_MiB;
  outcome.cpu_ms = 40;
  const auto answer = converted(outcome, "", "half");
  EXPECT_EQ(answer.exit_code, 137);
  EXPECT_EQ(answer.stderr_text, "half\nmemory limit of 536870912 bytes (512 MiB) exceeded\n");
  ASSERT_TRUE(answer.end);
  EXPECT_EQ(answer.end->cause, "memory");
  EXPECT_EQ(answer.end->signal, "SIGKILL");
  EXPECT_EQ(answer.end->limit, 512_MiB);
  outcome.limit = 1000;
  EXPECT_EQ(converted(outcome).stderr_text, "memory limit of 1000 bytes exceeded\n");
  // Even where the main process outlived the one that was killed.
  EXPECT_EQ(converted({.cause = Cause::memory, .status = 1}).exit_code, 137);
}

TEST(ToAnswer, ASignalIs128AndItsNumber) {
  const auto answer = converted({.cause = Cause::signaled, .by_signal = true, .status = 11});
  EXPECT_EQ(answer.exit_code, 139);
  ASSERT_TRUE(answer.end);
  EXPECT_EQ(answer.end->cause, "signaled");
  EXPECT_EQ(answer.end->signal, "SIGSEGV");
  EXPECT_FALSE(answer.end->memory_peak_bytes) << "unknown is left out";
  EXPECT_EQ(signal_name(64), "SIG64");
}

TEST(ToAnswer, ARefusedProcessOrBlockKeepsTheProgramsOwnStatus) {
  const auto processes = converted({.cause = Cause::processes, .status = 1, .limit = 128});
  EXPECT_EQ(processes.exit_code, 1);
  EXPECT_EQ(processes.end->cause, "processes");
  const auto disk = converted({.cause = Cause::disk, .by_signal = true, .status = 7});
  EXPECT_EQ(disk.exit_code, 135);
  EXPECT_EQ(disk.end->cause, "disk");
}

TEST(ToAnswer, DroppedOutputLeavesALineWithTheExactNumber) {
  EXPECT_EQ(cut("head\n", "tail", 100), "head\n[hutch: 91 bytes dropped here]\ntail");
  EXPECT_EQ(cut("head", "tail", 100), "head\n[hutch: 92 bytes dropped here]\ntail");
  EXPECT_EQ(cut("", "", 9), "[hutch: 9 bytes dropped here]\n");
}

TEST(ToAnswer, DroppedOutputIsCutBetweenCharacters) {
  const std::string fox = "\xF0\x9F\xA6\x8A";
  EXPECT_EQ(cut("ab" + fox.substr(0, 3), fox.substr(1) + "yz", 100),
            "ab\n[hutch: 96 bytes dropped here]\nyz");
  EXPECT_EQ(cut("ab" + fox, fox + "yz", 100),
            "ab" + fox + "\n[hutch: 88 bytes dropped here]\n" + fox + "yz");
  EXPECT_EQ(cut("ab\xFF", "yz", 100), "ab\xEF\xBF\xBD\n[hutch: 95 bytes dropped here]\nyz");
}

TEST(ToAnswer, DroppedOutputBringsTheTotals) {
  auto answer = shot(kFine, "whole", "");
  answer.result.err = {.head = "a", .tail = "b", .total_bytes = 9, .dropped_bytes = 7};
  const auto with_totals = to_answer(std::move(answer), 5, Report::informative);
  EXPECT_EQ(with_totals.stdout_bytes, 5U);
  EXPECT_EQ(with_totals.stderr_bytes, 9U);
  ASSERT_TRUE(with_totals.end);
  EXPECT_EQ(with_totals.end->cause, "exited");
}

TEST(ToAnswer, BrokenTextIsRepaired) {
  EXPECT_EQ(converted(kFine, "a\xFFz", "\xE4\xBD").stdout_text, "a\xEF\xBF\xBDz");
  EXPECT_EQ(converted(kFine, "a\xFFz", "\xE4\xBD").stderr_text, "\xEF\xBF\xBD");
}

TEST(ToAnswer, FilesComeWithTypeAndOmissionsWithReason) {
  auto one = shot(kFine);
  one.result.files = {{"chart.png", "x"}, {"notes", "text"}};
  one.result.omitted = {{"big", 9, model::OmitReason::too_large}};
  one.result.omitted_count = 1;
  one.result.deleted = {"gone"};
  const auto answer = to_answer(std::move(one), 5, Report::informative);
  ASSERT_EQ(answer.files->size(), 2U);
  EXPECT_EQ(answer.files->at(0).type, "image/png");
  EXPECT_EQ(answer.files->at(1).type, "text/plain");
  EXPECT_EQ(answer.files_omitted->at(0).reason, "too_large");
  EXPECT_FALSE(answer.files_omitted_count);
  EXPECT_EQ(answer.files_deleted->at(0), "gone");
  EXPECT_FALSE(answer.end);
}

TEST(ToAnswer, CountsOmissionsOnlyWhereTheListWasCut) {
  auto one = shot(kFine);
  one.result.omitted = {{"a", 1, model::OmitReason::count}};
  one.result.omitted_count = 5000;
  EXPECT_EQ(to_answer(std::move(one), 5, Report::informative).files_omitted_count, 5000U);
}

TEST(ToAnswer, AFullReportHasEveryKey) {
  const auto answer = to_answer(shot(kFine, "abc"), 5, Report::full);
  EXPECT_TRUE(answer.files && answer.files->empty());
  EXPECT_TRUE(answer.files_omitted && answer.files_omitted->empty());
  EXPECT_TRUE(answer.files_deleted && answer.files_deleted->empty());
  EXPECT_EQ(answer.stdout_bytes, 3U);
  EXPECT_EQ(answer.stderr_bytes, 0U);
  ASSERT_TRUE(answer.end);
  EXPECT_EQ(answer.end->cause, "exited");
  EXPECT_FALSE(answer.end->signal);
}

TEST(Convert, NamesTheLimitsThatWereWaivedInEveryAnswer) {
  model::Outcome outcome = kFine;
  outcome.waived = {"memory", "cpus"};
  const auto answer = to_answer(shot(outcome, "abc"), 5, Report::informative);
  ASSERT_TRUE(answer.end);
  EXPECT_NE(encode(answer).find(R"("waived":["memory","cpus"])"), std::string::npos);
}

}  // namespace
}  // namespace hutch::api::crusoe
