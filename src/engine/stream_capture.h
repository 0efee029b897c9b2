// Keeps what a cap lets through of one output stream: the first half and the last half, and the
// true count. Takes any amount of bytes in bounded memory. Never looks at what the bytes mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "model/shot.h"

namespace hutch::engine {

class StreamCapture {
 public:
  // `bytes_max` is kept in all; the odd byte goes to the last half.
  explicit StreamCapture(std::uint64_t bytes_max)
      : head_max_(bytes_max / 2), tail_max_(bytes_max - bytes_max / 2) {}

  void add(std::span<const std::byte> bytes);
  std::uint64_t total_bytes() const { return total_; }
  // What was kept. Empties this object.
  model::StreamText take();

 private:
  void add_tail(std::string_view bytes);

  std::uint64_t head_max_;
  std::uint64_t tail_max_;
  std::uint64_t total_ = 0;
  std::string head_;
  std::string ring_;         // the last bytes after the head; a ring once it has tail_max_ bytes
  std::size_t ring_at_ = 0;  // where the oldest byte of a full ring stands
};

}  // namespace hutch::engine
