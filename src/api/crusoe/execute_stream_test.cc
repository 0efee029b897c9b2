#include "api/crusoe/execute_stream.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "engine/fake_engine.h"

namespace hutch::api::crusoe {
namespace {

using boost::asio::awaitable;

// A client that takes its first bytes and then nothing until it is let go.
class StuckWriter final : public http::BodyWriter {
 public:
  explicit StuckWriter(boost::asio::io_context& io) : gate_(io) {
    gate_.expires_at(boost::asio::steady_timer::time_point::max());
  }
  awaitable<bool> write(std::string bytes) override {
    taken += bytes;
    boost::system::error_code ec;
    auto token = boost::asio::redirect_error(boost::asio::use_awaitable, ec);
    if (!open) co_await gate_.async_wait(token);
    co_return true;
  }
  void hold(std::uint64_t bytes) override { held = bytes; }
  void let_go() {
    open = true;
    gate_.cancel();
  }

  std::string taken;
  std::uint64_t held = 0;
  bool open = false;

 private:
  boost::asio::steady_timer gate_;
};

class ExecuteStreamTest : public testing::Test {
 protected:
  template <class Condition>
  [[nodiscard]] bool until(Condition condition) {
    io_.restart();
    const auto late = std::make_shared<bool>(false);
    boost::asio::steady_timer limit(io_, std::chrono::seconds(20));
    limit.async_wait([late](const boost::system::error_code& ec) { *late = !ec; });
    while (!condition() && !*late && io_.run_one() > 0) {
    }
    limit.cancel();
    return condition();
  }

  static awaitable<void> serve(std::shared_ptr<ExecuteStream> stream, model::ShotSpec spec,
                               http::BodyWriter& writer, bool& done) {
    auto begun = stream->begin(std::move(spec));
    if (!co_await std::move(begun)) {
      auto sent = stream->send(writer);
      co_await std::move(sent);
    }
    done = true;
  }

  boost::asio::io_context io_;
  engine::FakeEngine engine_{io_};
  SystemClock clock_;
  SeededRandom random_{7};
};

TEST_F(ExecuteStreamTest, CountsTheFilesOfARunThatHasEndedBeforeTheirTurnToBeSent) {
  service::Shots shots(io_, engine_, clock_, random_,
                       [] {
                         return service::HostMemory{24_GiB, 22_GiB};
                       },
                       {}, {});
  Metrics metrics(shots);
  shots.start([](const Status&) {});
  const std::string content(100'000, 'y');
  model::ShotSpec spec;
  spec.code = "#fake stdout first\n#fake file big " + content;
  StuckWriter writer(io_);
  bool done = false;
  const auto stream = std::make_shared<ExecuteStream>(
      io_.get_executor(), shots, metrics,
      ExecuteStream::Options{.still_running = std::chrono::seconds(15)});
  boost::asio::co_spawn(io_, serve(stream, std::move(spec), writer, done), boost::asio::detached);
  EXPECT_TRUE(until([&] { return writer.held >= content.size(); }))
      << "held: " << writer.held << ", sent: " << writer.taken;
  EXPECT_EQ(writer.taken.find("event: file"), std::string::npos);
  writer.let_go();
  ASSERT_TRUE(until([&] { return done; }));
  EXPECT_NE(writer.taken.find("event: file"), std::string::npos);
}

}  // namespace
}  // namespace hutch::api::crusoe
