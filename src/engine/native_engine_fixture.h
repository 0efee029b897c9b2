// The test in the warden's place: a native engine whose warden is scripted, over real pipes and
// sockets.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <cstring>

#include "base/sys.h"
#include "engine/native_engine.h"
#include "engine/piece_writer.h"
#include "plan/courier_wire.h"
#include "warden/protocol.h"

namespace hutch::engine {

using model::Cause;
using std::chrono::milliseconds;
using std::chrono::seconds;
using warden::Ask;
using warden::Report;
using warden::Request;
using warden::Tell;

inline std::string read_available(int fd) {
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
    spec.args = args_;
    spec.code = std::move(code);
    spec.files = std::move(files);
    spec.timeout_s = 5;
    result_.reset();
    engine_->run(SandboxHandle{ends.handle}, std::make_shared<const model::ShotSpec>(spec), live_,
                 [this](Result<model::ShotResult> result) { result_ = std::move(result); });
    EXPECT_FALSE(result_);
  }

  void expect_code(const Ends& ends, const std::string& code) {
    const Request arm = next_request();
    EXPECT_EQ(arm.ask, Ask::arm);
    EXPECT_EQ(arm.timeout_ms, 5000U);
    std::string wanted;
    for (const std::string& arg : args_) wanted += arg + '\0';
    wanted = wire_bytes(static_cast<std::uint32_t>(wanted.size())) + wanted;
    wanted += wire_bytes(std::uint64_t{code.size()}) + code;
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
  std::uint32_t grace_ms_ = 5000;     // longer than any test: an end that waits for it shows
  std::vector<std::string> args_;     // of the next run
  std::shared_ptr<LiveOutput> live_;  // of the next run
  Fd warden_;
  std::unique_ptr<NativeEngine> engine_;
  std::vector<SandboxHandle> warm_lost_;
  std::vector<Error> fatal_;
  std::optional<Result<model::ShotResult>> result_;
};

}  // namespace hutch::engine
