// How a handler sends a body that is still being made. The session's side of it writes in portions
// of the handler's and waits where the client is slow, so that a handler that waits for each write
// holds no more than it chose to.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <string>

namespace hutch::http {

class BodyWriter {
 public:
  virtual ~BodyWriter() = default;

  // Sends all of `bytes`, at once. False when the connection is gone, and from then on.
  virtual boost::asio::awaitable<bool> write(std::string bytes) = 0;
  // How much the handler holds for this client now, what is being written included. Told as often
  // as it changes, it counts with Limits::answers_bytes_max; this may close the connection.
  virtual void hold(std::uint64_t bytes) = 0;
};

}  // namespace hutch::http
