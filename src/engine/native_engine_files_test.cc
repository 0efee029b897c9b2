// Files in and out, with couriers that do as they should and couriers that do not.
#include <gtest/gtest.h>

#include "base/sys.h"
#include "engine/native_engine_fixture.h"

namespace hutch::engine {
namespace {

TEST_F(NativeEngineTest, CancelWhileFilesComeOutAnswersAtOnce) {
  Ends ends = start_running();
  ends = Ends{.handle = ends.handle};
  tell(Tell::ended, ends.handle);
  const Fd courier = start_courier(ends, Ask::files_out);
  engine_->cancel(SandboxHandle{ends.handle});
  EXPECT_FALSE(result_);
  EXPECT_EQ(result().outcome.cause, Cause::cancelled);
  expect_destroyed(ends);
}

TEST_F(NativeEngineTest, SendsFilesBeforeTheCode) {
  Ends ends = make_warm();
  const std::string big(3_MiB, 'b');
  run(ends, "x", {{"./d//a.txt", "hello"}, {"empty", ""}, {"big", big}});
  Fd courier = start_courier(ends, Ask::files_in);
  const std::string wanted = wire_bytes(plan::kMagicIn) + wire_bytes(std::uint32_t{3}) +
                             wire_bytes(std::uint32_t{7}) + wire_bytes(std::uint64_t{5}) +
                             "d/a.txthello" + wire_bytes(std::uint32_t{5}) +
                             wire_bytes(std::uint64_t{0}) + "empty" + wire_bytes(std::uint32_t{3}) +
                             wire_bytes(std::uint64_t{big.size()}) + "big" + big;
  EXPECT_TRUE(await_bytes(courier.get(), wanted.size()) == wanted);
  send_verdict(courier, plan::CourierVerdict::ok);
  courier.reset();
  tell(Tell::courier_ended, ends.handle);
  expect_code(ends, "x");
  ends = Ends{.handle = ends.handle};
  tell(Tell::ended, ends.handle, warden::kWorkEmpty);
  EXPECT_EQ(result().deleted, (std::vector<std::string>{"big", "d/a.txt", "empty"}));
}

TEST_F(NativeEngineTest, FilesThatDoNotFitAreRejectedWithTheLimit) {
  struct Row {
    plan::CourierVerdict verdict;
    std::uint32_t index;
    ErrorCode code;
    std::string message;
  };
  using plan::CourierVerdict;
  const Row rows[] = {
      {CourierVerdict::no_space, 0, ErrorCode::rejected,
       "the files do not fit: the working directory's limit is 268435456 bytes"},
      {CourierVerdict::no_inodes, 0, ErrorCode::rejected,
       "the files do not fit: the working directory's limit is 65536 files and directories"},
      {CourierVerdict::bad_path, 0, ErrorCode::rejected, "file path cannot be used: 'a'"},
      {CourierVerdict::bad_path, 77, ErrorCode::sandbox_lost, "the files could not be written"},
      {CourierVerdict::io, 0, ErrorCode::sandbox_lost, "the files could not be written"},
      {static_cast<CourierVerdict>(99), 0, ErrorCode::sandbox_lost,
       "the files could not be written"},
  };
  for (const Row& row : rows) {
    const Ends ends = make_warm();
    run(ends, "x", {{"a", "1"}});
    const Fd courier = start_courier(ends, Ask::files_in);
    send_verdict(courier, row.verdict, row.index);
    EXPECT_EQ(error().code, row.code);
    EXPECT_EQ(error().message, row.message);
    expect_destroyed(ends);
  }
}

TEST_F(NativeEngineTest, ACourierKilledForMemoryNamesThatLimit) {
  const Ends ends = make_warm();
  run(ends, "x", {{"a", "1"}});
  start_courier(ends, Ask::files_in).reset();
  tell(Tell::courier_ended, ends.handle);
  tell(Tell::ended, ends.handle, warden::kMemoryKilled);
  EXPECT_EQ(error().code, ErrorCode::rejected);
  EXPECT_EQ(error().message, "the files do not fit: the sandbox's memory limit is 536870912 bytes");
}

TEST_F(NativeEngineTest, ACourierThatDiesWithoutAWordLosesTheSandbox) {
  const Ends ends = make_warm();
  run(ends, "x", {{"a", "1"}});
  start_courier(ends, Ask::files_in).reset();
  tell(Tell::courier_ended, ends.handle);
  EXPECT_EQ(error().code, ErrorCode::sandbox_lost);
  EXPECT_EQ(error().step, Step::files_in);
}

TEST_F(NativeEngineTest, ACourierThatStandsStillIsGivenUp) {
  NativeEngineOptions options;
  options.courier_ms = 30;
  begin(options);
  const Ends in = make_warm();
  run(in, "x", {{"a", "1"}});
  const Fd courier = start_courier(in, Ask::files_in);
  EXPECT_EQ(error().code, ErrorCode::sandbox_lost);
  expect_destroyed(in);
  Ends out = start_running();
  out = Ends{.handle = out.handle};
  tell(Tell::ended, out.handle);
  const Fd second = start_courier(out, Ask::files_out);
  EXPECT_EQ(error().code, ErrorCode::unreadable_reply);
  expect_destroyed(out);
}

TEST_F(NativeEngineTest, BringsFilesOut) {
  Ends ends = start_running();
  ends = Ends{.handle = ends.handle};
  tell(Tell::ended, ends.handle, 0, 1);
  const Fd courier = start_courier(ends, Ask::files_out);
  const model::Limits limits;
  const std::string orders = wire_bytes(plan::kMagicOut) + wire_bytes(limits.file_bytes) +
                             wire_bytes(limits.files_bytes) + wire_bytes(limits.files_count) +
                             wire_bytes(std::uint32_t{0});
  EXPECT_EQ(await_bytes(courier.get(), orders.size()), orders);
  using plan::RecordKind;
  ASSERT_TRUE(sys::write_all(courier.get(), record(RecordKind::file, "chart.png", 3, "png") +
                                                record(RecordKind::omitted, "huge", 1U << 30U) +
                                                record(RecordKind::end, "", 1)));
  EXPECT_EQ(result().files.at(0).path, "chart.png");
  EXPECT_EQ(result().files.at(0).bytes, "png");
  EXPECT_EQ(result().omitted.at(0).path, "huge");
  EXPECT_EQ(result().omitted_count, 1U);
  EXPECT_EQ(result().outcome.status, 1);
  expect_destroyed(ends);
}

TEST_F(NativeEngineTest, TellsTheCourierWhatWasSentIn) {
  Ends ends = make_warm();
  run(ends, "x", {{"a", "abc"}, {"gone", "1"}});
  Fd courier = start_courier(ends, Ask::files_in);
  send_verdict(courier, plan::CourierVerdict::ok);
  tell(Tell::courier_ended, ends.handle);
  expect_code(ends, "x");
  ends = Ends{.handle = ends.handle};
  tell(Tell::ended, ends.handle);
  courier = start_courier(ends, Ask::files_out);
  const std::string orders = await_bytes(courier.get(), 28 + 2 * 44 + 1 + 4);
  EXPECT_EQ(orders.substr(24, 4), wire_bytes(std::uint32_t{2}));
  EXPECT_EQ(orders.substr(28, 12), wire_bytes(std::uint32_t{1}) + wire_bytes(std::uint64_t{3}));
  // BLAKE2b-256 of "abc".
  EXPECT_EQ(orders.substr(40, 4), "\xbd\xdd\x81\x3c");
  EXPECT_EQ(orders.substr(72, 1), "a");
  ASSERT_TRUE(sys::write_all(courier.get(), record(plan::RecordKind::unchanged, "a", 3) +
                                                record(plan::RecordKind::end, "", 0)));
  EXPECT_TRUE(result().files.empty());
  EXPECT_EQ(result().deleted, std::vector<std::string>{"gone"});
}

TEST_F(NativeEngineTest, AHostileCourierGivesAnUnreadableReply) {
  using plan::RecordKind;
  const std::string streams[] = {
      record(RecordKind::file, "x", ~std::uint64_t{0}),
      record(RecordKind::file, "../../etc/passwd", 1, "x"),
      record(RecordKind::file, "x", 4_MiB + 1),
      record(RecordKind::file, "a\xff", 1, "x"),
      record(static_cast<RecordKind>(77), "x", 1),
      std::string(100'000, '\xff'),
      record(RecordKind::end, "", 1U << 30U),
  };
  for (const auto& stream : streams) {
    Ends ends = start_running();
    ends = Ends{.handle = ends.handle};
    tell(Tell::ended, ends.handle);
    const Fd courier = start_courier(ends, Ask::files_out);
    ignore_error(sys::write_some(courier.get(), std::as_bytes(std::span(stream))));
    EXPECT_EQ(error().code, ErrorCode::unreadable_reply);
    expect_destroyed(ends);
  }
}

TEST_F(NativeEngineTest, AnEndlessCourierIsStoppedByTheLimits) {
  Ends ends = start_running();
  ends = Ends{.handle = ends.handle};
  tell(Tell::ended, ends.handle);
  const Fd courier = start_courier(ends, Ask::files_out);
  const std::string more = record(plan::RecordKind::file, "x", 100'000, std::string(100'000, 'x'));
  std::string pending;
  ASSERT_TRUE(until([&] {
    if (pending.empty()) pending = more;
    const auto put = sys::send_some(courier.get(), std::as_bytes(std::span(pending)));
    if (put) pending.erase(0, *put);
    return result_.has_value();
  }));
  EXPECT_EQ(error().code, ErrorCode::unreadable_reply);
}

TEST_F(NativeEngineTest, ADeadCourierIsReplacedOnce) {
  Ends ends = start_running();
  ends = Ends{.handle = ends.handle};
  tell(Tell::ended, ends.handle);
  start_courier(ends, Ask::files_out).reset();
  tell(Tell::courier_ended, ends.handle);
  const Fd second = start_courier(ends, Ask::files_out);
  ASSERT_TRUE(sys::write_all(second.get(), record(plan::RecordKind::file, "a", 1, "x") +
                                               record(plan::RecordKind::end, "", 0)));
  EXPECT_EQ(result().files.size(), 1U);
  expect_destroyed(ends);
}

TEST_F(NativeEngineTest, TwoDeadCouriersAreEnough) {
  Ends ends = start_running();
  ends = Ends{.handle = ends.handle};
  tell(Tell::ended, ends.handle);
  start_courier(ends, Ask::files_out).reset();
  tell(Tell::courier_ended, ends.handle);
  EXPECT_EQ(next_request().ask, Ask::files_out);
  tell(Tell::courier_failed, ends.handle);
  EXPECT_EQ(error().code, ErrorCode::unreadable_reply);
  expect_destroyed(ends);
}

}  // namespace
}  // namespace hutch::engine
