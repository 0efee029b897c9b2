// A descriptor that the server's one loop watches. Owns it; when this object goes, so do the
// descriptor and the callbacks that were still due.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>

#include "base/fd.h"
#include "base/result.h"

namespace hutch::engine {

class WatchedFd {
 public:
  WatchedFd() = default;
  // Makes the descriptor non-blocking. Fails as io, for a descriptor that cannot be watched.
  static Result<WatchedFd> watch(boost::asio::io_context& io, Fd fd);

  int get() const;
  explicit operator bool() const { return static_cast<bool>(state_); }
  void reset() { state_.reset(); }

  // Calls once when the descriptor can be read (end of file and errors included), or written. The
  // callback may reset or destroy this object.
  void when_readable(std::function<void()> callback);
  void when_writable(std::function<void()> callback);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hutch::engine
