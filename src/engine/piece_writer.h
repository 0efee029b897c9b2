// A list of byte strings on their way into a non-blocking stream socket, one after the other and
// without a copy of the large ones.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hutch::engine {

class PieceWriter {
 public:
  // Keeps the bytes itself.
  void add(std::string piece);
  // The bytes must outlive this object.
  void add_view(std::string_view piece);

  bool finished() const { return at_ == pieces_.size(); }
  // Writes what the socket takes now, 1 MiB at most, so that one large file does not hold up
  // everybody else. How much went out; fails when the peer has closed.
  Result<std::size_t> write_some(int socket);

 private:
  std::deque<std::string> owned_;  // a deque: what the views point at must not move
  std::deque<std::string_view> pieces_;
  std::size_t at_ = 0;
};

// The little-endian bytes of a number, as the wire wants them.
template <class Number>
std::string wire_bytes(Number number) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof number; ++i) {
    bytes += static_cast<char>(static_cast<unsigned char>(number >> (8 * i)));
  }
  return bytes;
}

}  // namespace hutch::engine
