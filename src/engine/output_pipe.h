// One output stream of a program: read as it comes, kept as far as the cap lets through. A program
// is never held up because nobody reads, unless its output is followed live and the reader is slow;
// and it never holds up the loop by writing without an end.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "engine/live_output.h"
#include "engine/stream_capture.h"
#include "engine/watched_fd.h"

namespace hutch::engine {

class OutputPipe : public std::enable_shared_from_this<OutputPipe> {
 public:
  explicit OutputPipe(std::uint64_t bytes_max) : capture_(bytes_max) {}

  Status open(boost::asio::io_context& io, Fd read_end);
  // Throws away what has come so far and gives its beginning, for an error text.
  std::string discard();
  // Reads from now on, in the loop, into `live` as `stream` where that is given. `ended` is called
  // when the last writer has closed.
  void start(std::shared_ptr<LiveOutput> live, OutputStream stream, std::function<void()> ended);
  // Reads what is in the pipe at this moment, even where `live` is full.
  void read_now();
  bool ended() const { return !pipe_; }
  void close() { pipe_.reset(); }
  // Without the bytes, where they went to `live`.
  model::StreamText take();

 private:
  void await();
  void on_readable();
  bool held_up() const { return live_ && live_->full(stream_); }
  // False when there is no more to read now.
  bool read_portion();

  WatchedFd pipe_;
  StreamCapture capture_;
  std::shared_ptr<LiveOutput> live_;
  OutputStream stream_{};
  std::uint64_t live_bytes_ = 0;
  std::function<void()> ended_;
};

}  // namespace hutch::engine
