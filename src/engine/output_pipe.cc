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

void OutputPipe::start(std::function<void()> ended) {
  ended_ = std::move(ended);
  if (pipe_) await();
}

void OutputPipe::await() {
  const auto weak = weak_from_this();
  pipe_.when_readable([weak] {
    const auto self = weak.lock();
    if (!self) return;
    for (int i = 0; i < kPortionsAtOnce && self->read_portion(); ++i) {
    }
    if (self->pipe_) return self->await();
    if (const auto ended = std::exchange(self->ended_, {})) ended();
  });
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
  capture_.add(std::span(buffer).first(got->size));
  return true;
}

}  // namespace hutch::engine
