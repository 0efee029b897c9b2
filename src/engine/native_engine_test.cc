// The native engine with the test in the warden's place: scripted reports, real pipes and sockets.
#include "engine/native_engine.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <cstring>

#include "base/sys.h"
#include "engine/piece_writer.h"
#include "plan/courier_wire.h"
#include "warden/protocol.h"

namespace hutch::engine {
namespace {

using model::Cause;
using std::chrono::milliseconds;
using std::chrono::seconds;
using warden::Ask;
using warden::Report;
using warden::Request;
using warden::Tell;

std::string read_available(int fd) {
  std::string text;
  std::array<std::byte, 65536> buffer;
  for (;;) {
    const auto got = sys::read_some(fd, buffer);
    if (!got || got->would_block || got->size == 0) return text;
    text.append(reinterpret_cast<const char*>(buffer.data()), got->size);
  }
}

// The far ends of one sandbox.
struct Ends {
  std::uint64_t handle = 0;
  Fd code;
  Fd out;
  Fd err;
};

class NativeEngineTest : public testing::Test {
 protected:
  void SetUp() override { begin({}); }

  void begin(NativeEngineOptions options) {
    options.imports = {"numpy", "odd\"name"};
    options.image.fill(7);
    options.output_grace_ms = grace_ms_;
    auto [server, warden] = *sys::socket_pair(SOCK_SEQPACKET);
    ASSERT_TRUE(sys::set_nonblocking(warden.get()));
    warden_ = std::move(warden);
    engine_ = std::make_unique<NativeEngine>(io_, std::move(server), clock_, options);
    engine_->on_warm_lost([this](SandboxHandle handle) { warm_lost_.push_back(handle); });
    engine_->on_fatal([this](const Error& error) { fatal_.push_back(error); });
  }

  template <class Condition>
  [[nodiscard]] bool until(Condition condition) {
    io_.restart();
    const auto late = std::make_shared<bool>(false);
    boost::asio::steady_timer limit(io_, seconds(20));
    limit.async_wait([late](const boost::system::error_code& ec) { *late = !ec; });
    // What the test itself awaits from a descriptor is not the loop's business: looked at often.
    bool met = false;  // asked once each time: a condition may take what it waited for
    while (!(met = condition()) && !*late) io_.run_one_for(milliseconds(1));
    limit.cancel();
    return met;
  }

  Request next_request() {
    Request request;
    EXPECT_TRUE(until([&] {
      const auto message =
          sys::receive_message(warden_.get(), std::as_writable_bytes(std::span(&request, 1)));
      return message && !message->would_block && message->size == sizeof request;
    }));
    return request;
  }

  void tell(const Report& report, const std::vector<int>& fds = {}) {
    ASSERT_TRUE(sys::send_message(warden_.get(), std::as_bytes(std::span(&report, 1)), fds));
  }

  void tell(Tell what, std::uint64_t handle, std::uint32_t flags = 0, int status = 0) {
    Report report;
    report.tell = what;
    report.handle = handle;
    report.flags = flags;
    report.status = status;
    report.duration_us = what == Tell::ended ? 42'500 : 0;
    tell(report);
  }

  Ends answer_create() {
    const Request request = next_request();
    EXPECT_EQ(request.ask, Ask::create);
    EXPECT_EQ(request.image[0], 7);
    Ends ends;
    ends.handle = request.handle;
    auto [code, code_far] = *sys::socket_pair(SOCK_STREAM);
    auto out = *sys::pipe();
    auto err = *sys::pipe();
    Report report;
    report.tell = Tell::created;
    report.handle = request.handle;
    report.timed_steps[0] = Step::init_clone;
    report.timings[0] = 250;
    tell(report, {code.get(), out.read.get(), err.read.get()});
    ends.code = std::move(code_far);
    ends.out = std::move(out.write);
    ends.err = std::move(err.write);
    EXPECT_TRUE(sys::set_nonblocking(ends.code.get()));
    return ends;
  }

  std::string await_bytes(int fd, std::size_t size) {
    std::string bytes;
    EXPECT_TRUE(until([&] {
      bytes += read_available(fd);
      return bytes.size() >= size;
    }));
    return bytes;
  }

  Ends make_warm() {
    std::optional<Result<Created>> created;
    engine_->create([&](Result<Created> result) { created = std::move(result); });
    EXPECT_FALSE(created);
    Ends ends = answer_create();
    const std::string json = R"({"imports":["numpy","odd\u0022name"]})";
    EXPECT_EQ(await_bytes(ends.code.get(), json.size() + 4),
              wire_bytes(static_cast<std::uint32_t>(json.size())) + json);
    EXPECT_TRUE(sys::write_all(ends.code.get(), "R"));
    EXPECT_TRUE(until([&] { return created.has_value(); }));
    EXPECT_TRUE(created->has_value());
    EXPECT_EQ((*created)->handle, SandboxHandle{ends.handle});
    EXPECT_EQ((*created)->timings.front().step, Step::init_clone);
    EXPECT_EQ((*created)->timings.back().step, Step::program_ready);
    return ends;
  }

  void run(const Ends& ends, std::string code, std::vector<model::InputFile> files = {}) {
    model::ShotSpec spec;
    spec.code = std::move(code);
    spec.files = std::move(files);
    spec.timeout_s = 5;
    result_.reset();
    engine_->run(SandboxHandle{ends.handle}, std::make_shared<const model::ShotSpec>(spec),
                 [this](Result<model::ShotResult> result) { result_ = std::move(result); });
    EXPECT_FALSE(result_);
  }

  void expect_code(const Ends& ends, const std::string& code) {
    const Request arm = next_request();
    EXPECT_EQ(arm.ask, Ask::arm);
    EXPECT_EQ(arm.timeout_ms, 5000U);
    const std::string wanted = wire_bytes(std::uint64_t{code.size()}) + code;
    EXPECT_EQ(await_bytes(ends.code.get(), wanted.size()), wanted);
  }

  Ends start_running(const std::string& code = "print(1)",
                     std::vector<model::InputFile> files = {}) {
    Ends ends = make_warm();
    run(ends, code, std::move(files));
    expect_code(ends, code);
    ends.code.reset();
    return ends;
  }

  model::ShotResult& result() {
    EXPECT_TRUE(until([&] { return result_.has_value(); }));
    EXPECT_TRUE(result_->has_value());
    return result_->value();
  }
  Error error() {
    EXPECT_TRUE(until([&] { return result_.has_value(); }));
    EXPECT_FALSE(result_->has_value());
    return result_->error();
  }

  void expect_destroyed(const Ends& ends) {
    const Request request = next_request();
    EXPECT_EQ(request.ask, Ask::destroy);
    EXPECT_EQ(request.handle, ends.handle);
    EXPECT_EQ(engine_->live(), 1U);
    tell(Tell::destroyed, ends.handle);
    EXPECT_TRUE(until([&] { return engine_->live() == 0; }));
  }

  // The far end of a courier's stream, once it was asked for.
  Fd start_courier(const Ends& ends, Ask kind) {
    const Request request = next_request();
    EXPECT_EQ(request.ask, kind);
    auto [near, far] = *sys::socket_pair(SOCK_STREAM);
    Report report;
    report.tell = Tell::courier;
    report.handle = ends.handle;
    tell(report, {near.get()});
    EXPECT_TRUE(sys::set_nonblocking(far.get()));
    return std::move(far);
  }

  void send_verdict(const Fd& courier, plan::CourierVerdict what, std::uint32_t index = 0) {
    const plan::Verdict verdict{what, 0, index};
    ASSERT_TRUE(
        sys::write_all(courier.get(), {reinterpret_cast<const char*>(&verdict), sizeof verdict}));
  }

  static std::string record(plan::RecordKind kind, const std::string& path, std::uint64_t size,
                            const std::string& data = "") {
    return std::string(1, static_cast<char>(kind)) + std::string(1, '\0') +
           wire_bytes(static_cast<std::uint32_t>(path.size())) + wire_bytes(size) + path + data;
  }

  boost::asio::io_context io_;
  SystemClock clock_;
  std::uint32_t grace_ms_ = 5000;  // longer than any test: an end that waits for it shows
  Fd warden_;
  std::unique_ptr<NativeEngine> engine_;
  std::vector<SandboxHandle> warm_lost_;
  std::vector<Error> fatal_;
  std::optional<Result<model::ShotResult>> result_;
};

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
