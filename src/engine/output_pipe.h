// One output stream of a program: read as it comes, kept as far as the cap lets through. A program
// is never held up because nobody reads, and never holds up the loop by writing without an end.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "engine/stream_capture.h"
#include "engine/watched_fd.h"

namespace hutch::engine {

class OutputPipe : public std::enable_shared_from_this<OutputPipe> {
 public:
  explicit OutputPipe(std::uint64_t bytes_max) : capture_(bytes_max) {}

  Status open(boost::asio::io_context& io, Fd read_end);
  // Throws away what has come so far and gives its beginning, for an error text.
  std::string discard();
  // Reads from now on, in the loop. `ended` is called when the last writer has closed.
  void start(std::function<void()> ended);
  // Reads what is in the pipe at this moment.
  void read_now();
  bool ended() const { return !pipe_; }
  void close() { pipe_.reset(); }
  model::StreamText take() { return capture_.take(); }

 private:
  void await();
  // False when there is no more to read now.
  bool read_portion();

  WatchedFd pipe_;
  StreamCapture capture_;
  std::function<void()> ended_;
};

}  // namespace hutch::engine
