// Making, running and ending, with the warden scripted.
#include "engine/native_engine.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "base/sys.h"
#include "engine/native_engine_fixture.h"

namespace hutch::engine {
namespace {

TEST_F(NativeEngineTest, RunsAProgramWithoutFiles) {
  Ends ends = start_running("print(2**32)");
  ASSERT_TRUE(sys::write_all(ends.out.get(), "4294967296\n"));
  ASSERT_TRUE(sys::write_all(ends.err.get(), "careful\n"));
  ends.out.reset();
  ends.err.reset();
  tell(Tell::ended, ends.handle, warden::kWorkEmpty);
  EXPECT_EQ(result().out.head, "4294967296\n");
  EXPECT_EQ(result().err.head, "careful\n");
  EXPECT_EQ(result().outcome.cause, Cause::exited);
  EXPECT_EQ(result().duration_ms, 42U);
  expect_destroyed(ends);
}

TEST_F(NativeEngineTest, OutputInTheInstantOfTheEndIsNotLost) {
  Ends ends = start_running();
  const std::string full(65536, 'x');  // all that a pipe holds
  ASSERT_TRUE(sys::write_all(ends.out.get(), full));
  ends.out.reset();
  ends.err.reset();
  tell(Tell::ended, ends.handle, warden::kWorkEmpty, 3);
  EXPECT_EQ(result().out.head, full);
  EXPECT_EQ(result().outcome.status, 3);
}

TEST_F(NativeEngineTest, WaitsAMomentForOutputOfTheBackgroundAndNotLonger) {
  grace_ms_ = 50;
  begin({});
  Ends ends = start_running();
  tell(Tell::ended, ends.handle, warden::kWorkEmpty);
  ASSERT_TRUE(until([&] { return engine_->live() == 1; }));
  ASSERT_TRUE(sys::write_all(ends.out.get(), "late"));
  EXPECT_EQ(result().out.head, "late");
}

TEST_F(NativeEngineTest, ATimeoutDoesNotWaitForTheBackground) {
  Ends ends = start_running();
  ASSERT_TRUE(sys::write_all(ends.out.get(), "so far"));
  tell(Tell::ended, ends.handle, warden::kTimedOut | warden::kWorkEmpty);
  EXPECT_EQ(result().outcome.cause, Cause::timeout);
  EXPECT_EQ(result().outcome.limit, 5U);
  EXPECT_EQ(result().out.head, "so far");
}

TEST_F(NativeEngineTest, KeepsBothEndsOfAFlood) {
  NativeEngineOptions options;
  options.limits.stream_bytes = 1000;
  begin(options);
  Ends ends = start_running();
  ASSERT_TRUE(sys::set_nonblocking(ends.out.get()));
  std::string text;
  for (int i = 0; text.size() < 3'000'000; ++i) text += std::to_string(i);
  std::string_view rest = text;
  ASSERT_TRUE(until([&] {
    const auto put = sys::write_some(ends.out.get(), std::as_bytes(std::span(rest)));
    rest.remove_prefix(*put);
    return rest.empty();
  }));
  ends.out.reset();
  ends.err.reset();
  tell(Tell::ended, ends.handle, warden::kWorkEmpty);
  EXPECT_EQ(result().out.head, text.substr(0, 500));
  EXPECT_EQ(result().out.tail, text.substr(text.size() - 500));
  EXPECT_EQ(result().out.dropped_bytes, text.size() - 1000);
}

TEST_F(NativeEngineTest, TakesCodeLargerThanTheSocketHolds) {
  const std::string code(32_MiB, '#');
  Ends ends = make_warm();
  run(ends, code);
  expect_code(ends, code);
  ends = Ends{.handle = ends.handle};
  tell(Tell::ended, ends.handle, warden::kWorkEmpty);
  EXPECT_EQ(result().outcome.cause, Cause::exited);
}

TEST_F(NativeEngineTest, WhatLibrariesSayWhileTheyLoadIsNotOutput) {
  std::optional<Result<Created>> created;
  engine_->create([&](Result<Created> made) { created = std::move(made); });
  Ends ends = answer_create();
  await_bytes(ends.code.get(), 4);
  ASSERT_TRUE(sys::write_all(ends.out.get(), "hello from a library"));
  ASSERT_TRUE(sys::write_all(ends.code.get(), "R"));
  ASSERT_TRUE(until([&] { return created.has_value(); }));
  run(ends, "x");
  expect_code(ends, "x");
  ends = Ends{.handle = ends.handle};
  tell(Tell::ended, ends.handle, warden::kWorkEmpty);
  EXPECT_EQ(result().out.head, "");
}

TEST_F(NativeEngineTest, AnInterpreterThatEndsEarlySaysWhy) {
  std::optional<Result<Created>> created;
  engine_->create([&](Result<Created> made) { created = std::move(made); });
  Ends ends = answer_create();
  ASSERT_TRUE(sys::write_all(ends.err.get(), "hutch: cannot import numpy: no\nmore"));
  ends = Ends{.handle = ends.handle};
  tell(Tell::ended, ends.handle, 0, 70);
  ASSERT_TRUE(until([&] { return created.has_value(); }));
  EXPECT_EQ(created->error().code, ErrorCode::sandbox_lost);
  EXPECT_EQ(created->error().message,
            "the interpreter ended before it was ready: hutch: cannot import numpy: no");
  expect_destroyed(ends);
}

TEST_F(NativeEngineTest, AnInterpreterThatIsNeverReadyIsGivenUp) {
  NativeEngineOptions options;
  options.ready_ms = 30;
  begin(options);
  std::optional<Result<Created>> created;
  engine_->create([&](Result<Created> made) { created = std::move(made); });
  const Ends ends = answer_create();
  ASSERT_TRUE(until([&] { return created.has_value(); }));
  EXPECT_EQ(created->error().code, ErrorCode::sandbox_lost);
  expect_destroyed(ends);
}

TEST_F(NativeEngineTest, AFailedStepIsNamed) {
  std::optional<Result<Created>> created;
  engine_->create([&](Result<Created> made) { created = std::move(made); });
  Report report;
  report.tell = Tell::failed;
  report.handle = next_request().handle;
  report.step = Step::pivot;
  report.sys_errno = EPERM;
  tell(report);
  ASSERT_TRUE(until([&] { return created.has_value(); }));
  EXPECT_EQ(created->error().code, ErrorCode::setup_failed);
  EXPECT_EQ(created->error().step, Step::pivot);
  EXPECT_EQ(created->error().sys_errno, EPERM);
  EXPECT_EQ(engine_->live(), 0U);
}

TEST_F(NativeEngineTest, NoFreeSlotIsBusy) {
  std::optional<Result<Created>> created;
  engine_->create([&](Result<Created> made) { created = std::move(made); });
  Report report;
  report.tell = Tell::failed;
  report.handle = next_request().handle;
  report.sys_errno = EAGAIN;
  tell(report);
  ASSERT_TRUE(until([&] { return created.has_value(); }));
  EXPECT_EQ(created->error().code, ErrorCode::busy);
}

TEST_F(NativeEngineTest, AWarmSandboxThatDiesIsToldAndNeverRuns) {
  const Ends ends = make_warm();
  tell(Tell::ended, ends.handle, 0, 0);
  ASSERT_TRUE(until([&] { return !warm_lost_.empty(); }));
  EXPECT_EQ(warm_lost_.front(), SandboxHandle{ends.handle});
  run(ends, "x");
  EXPECT_EQ(error().code, ErrorCode::sandbox_lost);
  EXPECT_EQ(error().step, Step::run_start);
  expect_destroyed(ends);
}

TEST_F(NativeEngineTest, AWarmSandboxWhoseInitDiesIsTold) {
  const Ends ends = make_warm();
  tell(Tell::destroyed, ends.handle);
  ASSERT_TRUE(until([&] { return !warm_lost_.empty(); }));
  EXPECT_EQ(engine_->live(), 0U);
}

TEST_F(NativeEngineTest, AProgramThatDiesWithItsCodeUnreadNeverStarted) {
  Ends ends = make_warm();
  run(ends, "print(1)");
  EXPECT_EQ(next_request().ask, Ask::arm);
  ends.code.reset();  // with the code in it
  Report report;
  report.tell = Tell::ended;
  report.handle = ends.handle;
  report.by_signal = 1;
  report.status = 9;
  tell(report);
  EXPECT_EQ(error().code, ErrorCode::sandbox_lost);
  EXPECT_EQ(error().step, Step::run_start);
  expect_destroyed(ends);
}

TEST_F(NativeEngineTest, ASandboxThatVanishesInTheMiddleIsLost) {
  const Ends ends = start_running();
  tell(Tell::destroyed, ends.handle);
  EXPECT_EQ(error().code, ErrorCode::sandbox_lost);
  EXPECT_NE(error().step, Step::run_start);
  EXPECT_EQ(engine_->live(), 0U);
}

TEST_F(NativeEngineTest, CancelStopsARun) {
  const Ends ends = start_running();
  engine_->cancel(SandboxHandle{ends.handle});
  engine_->cancel(SandboxHandle{ends.handle});
  EXPECT_EQ(next_request().ask, Ask::stop);
  tell(Tell::ended, ends.handle, warden::kStopped);
  EXPECT_EQ(result().outcome.cause, Cause::cancelled);
  expect_destroyed(ends);
}

TEST_F(NativeEngineTest, DestroysAWarmSandbox) {
  const Ends ends = make_warm();
  engine_->destroy(SandboxHandle{ends.handle});
  expect_destroyed(ends);
  EXPECT_TRUE(warm_lost_.empty());
}

TEST_F(NativeEngineTest, CountsWhatWouldNotDie) {
  const Ends ends = make_warm();
  engine_->destroy(SandboxHandle{ends.handle});
  next_request();
  tell(Tell::destroyed, ends.handle, warden::kQuarantined);
  ASSERT_TRUE(until([&] { return engine_->quarantined() == 1; }));
  EXPECT_EQ(engine_->live(), 1U);
  tell(Tell::destroyed, ends.handle);
  ASSERT_TRUE(until([&] { return engine_->quarantined() == 0; }));
  EXPECT_EQ(engine_->live(), 0U);
}

TEST_F(NativeEngineTest, TheEndOfTheWardenEndsEverythingOnce) {
  const Ends warm = make_warm();
  const Ends running = start_running();
  std::optional<Result<Created>> created;
  engine_->create([&](Result<Created> made) { created = std::move(made); });
  warden_.reset();
  EXPECT_EQ(error().code, ErrorCode::warden_gone);
  ASSERT_TRUE(until([&] { return created.has_value() && !fatal_.empty(); }));
  EXPECT_EQ(created->error().code, ErrorCode::warden_gone);
  EXPECT_EQ(fatal_.size(), 1U);
  EXPECT_TRUE(warm_lost_.empty());
  EXPECT_EQ(engine_->live(), 0U);
  created.reset();
  engine_->create([&](Result<Created> made) { created = std::move(made); });
  EXPECT_FALSE(created);
  ASSERT_TRUE(until([&] { return created.has_value(); }));
  run(warm, "x");
  EXPECT_EQ(error().code, ErrorCode::warden_gone);
}

TEST_F(NativeEngineTest, AWardenThatTalksNonsenseIsGone) {
  ASSERT_TRUE(sys::send_message(warden_.get(), std::as_bytes(std::span("nonsense")), {}));
  ASSERT_TRUE(until([&] { return !fatal_.empty(); }));
  EXPECT_EQ(fatal_.front().code, ErrorCode::warden_gone);
}

TEST_F(NativeEngineTest, ReportsAboutNobodyAndOutOfTurnDoNothing) {
  const Ends ends = make_warm();
  tell(Tell::ended, 999);
  tell(Tell::created, ends.handle);
  tell(Tell::courier_failed, ends.handle);
  tell(Tell::courier_ended, ends.handle);
  run(ends, "x");
  expect_code(ends, "x");
  EXPECT_TRUE(warm_lost_.empty());
}

TEST_F(NativeEngineTest, MayGoInTheMiddleOfARun) {
  const Ends ends = start_running();
  engine_.reset();
  EXPECT_FALSE(result_);
}

}  // namespace
}  // namespace hutch::engine
