// Answers whose body is made while it is sent.
#include <fmt/format.h>

#include <exception>
#include <utility>

#include "http/body_writer.h"
#include "http/session.h"

namespace hutch::http {

using boost::asio::awaitable;

class Session::StreamWriter final : public BodyWriter {
 public:
  StreamWriter(Session& session, Framing framing) : session_(session), framing_(framing) {}

  awaitable<bool> write(std::string bytes) override {
    // An empty chunk would be the last one.
    if (bytes.empty()) co_return !broken_;
    sent_ += bytes.size();
    std::string size;
    std::string_view after;
    if (framing_ == Framing::chunked) {
      size = fmt::format("{:x}\r\n", bytes.size());
      after = "\r\n";
    }
    co_await put({size, bytes, after});
    co_return !broken_;
  }

  void hold(std::uint64_t bytes) override { session_.hold_answer(bytes); }

  // Says that the body is whole.
  awaitable<bool> finish() {
    if (framing_ == Framing::chunked) co_await put({"0\r\n\r\n", {}, {}});
    co_return !broken_;
  }

  std::uint64_t sent() const { return sent_; }

 private:
  awaitable<void> put(std::array<std::string_view, 3> parts) {
    if (broken_ || session_.closed_ || session_.gone_) {
      broken_ = true;
      co_return;
    }
    broken_ = !co_await session_.write(parts);
  }

  Session& session_;
  const Framing framing_;
  bool broken_ = false;
  std::uint64_t sent_ = 0;
};

// A body that breaks off ends without its last chunk, so that nobody takes it for whole.
awaitable<bool> Session::write_stream(const BodyStream& stream, Framing framing,
                                      std::uint64_t& sent) {
  StreamWriter writer(*this, framing);
  streaming_ = true;
  bool whole = true;
  try {
    auto pending = stream(writer);
    co_await std::move(pending);
  } catch (const std::exception&) {
    whole = false;
  }
  if (whole) whole = co_await writer.finish();
  streaming_ = false;
  sent = writer.sent();
  co_return whole;
}

}  // namespace hutch::http
