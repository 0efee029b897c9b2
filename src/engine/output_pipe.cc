#include "engine/output_pipe.h"

#include <array>
#include <utility>

#include "base/sys.h"
#include "base/units.h"

namespace hutch::engine {
namespace {

constexpr std::size_t kPortion = 65536;
constexpr int kPortionsAtOnce = 4;
// More than a pipe of an unprivileged process can hold.
constexpr std::size_t kPipeBytesMax = 1_MiB + kPortion;
constexpr std::size_t kExcerptBytes = 2048;

}  // namespace

Status OutputPipe::open(boost::asio::io_context& io, Fd read_end) {
  pipe_ = TRY(WatchedFd::watch(io, std::move(read_end)));
  return {};
}

std::string OutputPipe::discard() {
  read_now();
  std::string excerpt = capture_.take().head;
  excerpt.resize(std::min(excerpt.size(), kExcerptBytes));
  return excerpt;
}

void OutputPipe::start(std::shared_ptr<LiveOutput> live, OutputStream stream,
                       std::function<void()> ended) {
  live_ = std::move(live);
  stream_ = stream;
  ended_ = std::move(ended);
  await();
}

void OutputPipe::await() {
  if (!pipe_) return;
  const auto weak = weak_from_this();
  if (held_up()) {
    live_->when_room(stream_, [weak] {
      if (const auto self = weak.lock()) self->await();
    });
    return;
  }
  pipe_.when_readable([weak] {
    if (const auto self = weak.lock()) self->on_readable();
  });
}

void OutputPipe::on_readable() {
  for (int i = 0; i < kPortionsAtOnce && !held_up() && read_portion(); ++i) {
  }
  if (pipe_) return await();
  if (const auto ended = std::exchange(ended_, {})) ended();
}

// Bounded: what is left behind in the background may write without an end. What the program itself
// wrote is in the pipe by the time its end is known.
void OutputPipe::read_now() {
  for (std::size_t total = 0; total < kPipeBytesMax; total += kPortion) {
    if (!read_portion()) return;
  }
}

bool OutputPipe::read_portion() {
  if (!pipe_) return false;
  std::array<std::byte, kPortion> buffer;
  const auto got = sys::read_some(pipe_.get(), buffer);
  if (got && got->would_block) return false;
  if (!got || got->size == 0) {
    pipe_.reset();
    return false;
  }
  const auto bytes = std::span(buffer).first(got->size);
  if (live_) {
    live_bytes_ += bytes.size();
    live_->add(stream_, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  } else {
    capture_.add(bytes);
  }
  return true;
}

model::StreamText OutputPipe::take() {
  return live_ ? model::StreamText{.total_bytes = live_bytes_} : capture_.take();
}

}  // namespace hutch::engine
