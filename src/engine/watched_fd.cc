#include "engine/watched_fd.h"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <utility>

#include "base/sys.h"

namespace hutch::engine {

using boost::asio::posix::stream_descriptor;

struct WatchedFd::State {
  explicit State(boost::asio::io_context& io) : descriptor(io) {}
  // Asio lets go of the number first; the Fd closes it after that.
  ~State() {
    if (descriptor.is_open()) descriptor.release();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Fd fd;
  stream_descriptor descriptor;
};

Result<WatchedFd> WatchedFd::watch(boost::asio::io_context& io, Fd fd) {
  TRY(sys::set_nonblocking(fd.get()));
  WatchedFd watched;
  watched.state_ = std::make_shared<State>(io);
  boost::system::error_code ec;
  watched.state_->descriptor.assign(fd.get(), ec);
  if (ec) return fail(Error{ErrorCode::io, Step::none, ec.value(), "cannot watch a descriptor"});
  watched.state_->fd = std::move(fd);
  return watched;
}

int WatchedFd::get() const { return state_ ? state_->fd.get() : -1; }

void WatchedFd::when_readable(std::function<void()> callback) {
  const std::weak_ptr<State> weak = state_;
  state_->descriptor.async_wait(stream_descriptor::wait_read,
                                [weak, callback = std::move(callback)](const auto& ec) {
                                  if (!ec && !weak.expired()) callback();
                                });
}

void WatchedFd::when_writable(std::function<void()> callback) {
  const std::weak_ptr<State> weak = state_;
  state_->descriptor.async_wait(stream_descriptor::wait_write,
                                [weak, callback = std::move(callback)](const auto& ec) {
                                  if (!ec && !weak.expired()) callback();
                                });
}

}  // namespace hutch::engine
