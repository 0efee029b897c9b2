// A run whose output is followed, with the warden scripted.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "engine/native_engine_fixture.h"

namespace hutch::engine {
namespace {

class NativeEngineLiveTest : public NativeEngineTest {
 protected:
  void SetUp() override {
    NativeEngineTest::SetUp();
    live_ = std::make_shared<LiveOutput>();
  }

  std::string taken() {
    std::string text;
    while (const auto piece = live_->take()) {
      (piece->stream == OutputStream::out ? out_ : err_) += piece->bytes;
      text += piece->bytes;
    }
    return text;
  }

  // As much as the pipe takes without waiting.
  static std::size_t fill(const Fd& pipe) {
    EXPECT_TRUE(sys::set_nonblocking(pipe.get()));
    const std::string portion(65536, 'x');
    std::size_t total = 0;
    for (;;) {
      const auto put = sys::write_some(pipe.get(), std::as_bytes(std::span(portion)));
      if (!put || *put == 0) return total;
      total += *put;
    }
  }

  // Writes until nothing is read any more: how much went out.
  std::size_t fill_until_full(const Ends& ends) {
    std::size_t written = 0;
    EXPECT_TRUE(until([&] {
      written += fill(ends.out);
      return live_->full(OutputStream::out);
    }));
    return written;
  }

  std::string out_;
  std::string err_;
};

TEST_F(NativeEngineLiveTest, BeginsWhenTheProgramHasTakenItsCode) {
  Ends ends = make_warm();
  run(ends, "print(1)");
  expect_code(ends, "print(1)");
  io_.run_for(milliseconds(5));
  EXPECT_FALSE(live_->begun());
  ends.code.reset();
  EXPECT_TRUE(until([&] { return live_->begun(); }));
  ASSERT_TRUE(sys::write_all(ends.out.get(), "now"));
  EXPECT_TRUE(until([&] { return taken() == "now"; }));
  EXPECT_FALSE(result_) << "the program still runs";
  ASSERT_TRUE(sys::write_all(ends.err.get(), "end"));
  ends.out.reset();
  ends.err.reset();
  tell(Tell::ended, ends.handle, warden::kWorkEmpty, 3);
  EXPECT_EQ(result().outcome.status, 3);
  EXPECT_EQ(result().out.head, "");
  EXPECT_EQ(result().out.total_bytes, 3U);
  EXPECT_EQ(result().out.dropped_bytes, 0U);
  EXPECT_EQ(result().err.total_bytes, 3U);
  EXPECT_EQ(taken(), "end");
  expect_destroyed(ends);
}

TEST_F(NativeEngineLiveTest, NeverBeginsInASandboxThatTookNoCode) {
  Ends ends = make_warm();
  run(ends, "print(1)");
  const Request arm = next_request();
  EXPECT_EQ(arm.ask, Ask::arm);
  ASSERT_TRUE(sys::write_all(ends.err.get(), "Killed"));
  ends.code.reset();  // with the code unread: a reset
  ends.out.reset();
  ends.err.reset();
  io_.run_for(milliseconds(5));
  EXPECT_FALSE(live_->begun());
  tell(Tell::ended, ends.handle, warden::kWorkEmpty, 1);
  EXPECT_EQ(error().code, ErrorCode::sandbox_lost);
  EXPECT_EQ(error().step, Step::run_start);
  EXPECT_FALSE(live_->begun());
  EXPECT_EQ(taken(), "") << "the next sandbox begins with nothing";
}

TEST_F(NativeEngineLiveTest, AnEndBeforeTheFirstLookBeginsAllTheSame) {
  Ends ends = make_warm();
  run(ends, "x");
  expect_code(ends, "x");
  ASSERT_TRUE(sys::write_all(ends.out.get(), "quick"));
  ends = Ends{.handle = ends.handle};
  tell(Tell::ended, ends.handle, warden::kWorkEmpty);
  EXPECT_EQ(result().outcome.cause, Cause::exited);
  EXPECT_TRUE(live_->begun());
  EXPECT_EQ(taken(), "quick");
}

TEST_F(NativeEngineLiveTest, ATimeoutWhileTheCodeIsWrittenBegins) {
  const std::string code(32_MiB, '#');
  Ends ends = make_warm();
  run(ends, code);
  EXPECT_EQ(next_request().ask, Ask::arm);
  tell(Tell::ended, ends.handle, warden::kTimedOut | warden::kWorkEmpty);
  EXPECT_EQ(result().outcome.cause, Cause::timeout);
  EXPECT_TRUE(live_->begun());
}

TEST_F(NativeEngineLiveTest, ASlowReaderStopsThePipe) {
  Ends ends = start_running();
  ASSERT_TRUE(until([&] { return live_->begun(); }));
  std::size_t written = fill_until_full(ends);
  written += fill(ends.out);
  io_.run_for(milliseconds(20));
  EXPECT_EQ(fill(ends.out), 0U) << "the program would wait now";
  EXPECT_LT(live_->held_bytes(), 1_MiB + 65536 + 64 * 20);
  ASSERT_TRUE(sys::write_all(ends.err.get(), "the other stream goes on"));
  ASSERT_TRUE(until([&] { return live_->held_bytes() > written - 65536; }));
  // The reader comes, and with it the rest.
  std::size_t got = 0;
  ASSERT_TRUE(until([&] {
    got += taken().size();
    return got == written + 24;
  }));
  EXPECT_EQ(out_.size(), written);
  EXPECT_EQ(err_, "the other stream goes on");
  EXPECT_GT(fill(ends.out), 0U);
}

TEST_F(NativeEngineLiveTest, TheEndDoesNotWaitForASlowReader) {
  Ends ends = start_running();
  ASSERT_TRUE(until([&] { return live_->begun(); }));
  std::size_t written = fill_until_full(ends);
  written += fill(ends.out);
  ends.out.reset();
  ends.err.reset();
  tell(Tell::ended, ends.handle, warden::kWorkEmpty);
  EXPECT_EQ(result().out.total_bytes, written);
  EXPECT_EQ(taken().size(), written) << "what stood in the pipe is there";
  expect_destroyed(ends);
}

TEST_F(NativeEngineLiveTest, WhatIsWrittenInTheBackgroundIsHeldUpToo) {
  grace_ms_ = 100;
  begin({});
  Ends ends = start_running();
  ASSERT_TRUE(until([&] { return live_->begun(); }));
  tell(Tell::ended, ends.handle, warden::kWorkEmpty);
  std::size_t most = 0;
  ASSERT_TRUE(until([&] {
    if (result_) return true;  // from then on nobody has the pipe's other end
    fill(ends.out);
    most = std::max(most, live_->held_bytes());
    return false;
  }));
  EXPECT_LT(most, 3_MiB);
  EXPECT_EQ(result().out.total_bytes, taken().size());
}

TEST_F(NativeEngineLiveTest, CancelledWhileTheReaderIsSlow) {
  Ends ends = start_running();
  ASSERT_TRUE(until([&] { return live_->begun(); }));
  fill_until_full(ends);
  engine_->cancel(SandboxHandle{ends.handle});
  EXPECT_EQ(next_request().ask, Ask::stop);
  tell(Tell::ended, ends.handle, warden::kStopped);
  EXPECT_EQ(result().outcome.cause, Cause::cancelled);
  taken();  // room where nobody reads any more
  io_.run_for(milliseconds(5));
  expect_destroyed(ends);
}

TEST_F(NativeEngineLiveTest, TheEngineMayGoBeforeTheReader) {
  Ends ends = start_running();
  ASSERT_TRUE(until([&] { return live_->begun(); }));
  fill_until_full(ends);
  engine_.reset();
  EXPECT_GE(taken().size(), 1_MiB - 64 * 20);
}

TEST_F(NativeEngineTest, HandsArgumentsOver) {
  args_ = {"-v", "", "two words"};
  Ends ends = start_running("print(1)");
  ends.out.reset();
  ends.err.reset();
  tell(Tell::ended, ends.handle, warden::kWorkEmpty);
  EXPECT_EQ(result().outcome.cause, Cause::exited);
}

}  // namespace
}  // namespace hutch::engine
