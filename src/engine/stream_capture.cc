#include "engine/stream_capture.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace hutch::engine {

void StreamCapture::add(std::span<const std::byte> bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  total_ += text.size();
  if (head_.size() < head_max_) {
    const std::string_view first = text.substr(0, head_max_ - head_.size());
    head_.append(first);
    text.remove_prefix(first.size());
  }
  add_tail(text);
}

void StreamCapture::add_tail(std::string_view bytes) {
  if (bytes.empty() || tail_max_ == 0) return;
  if (bytes.size() > tail_max_) bytes.remove_prefix(bytes.size() - tail_max_);
  if (ring_.size() < tail_max_) {
    const std::string_view first = bytes.substr(0, tail_max_ - ring_.size());
    ring_.append(first);
    bytes.remove_prefix(first.size());
  }
  while (!bytes.empty()) {
    const std::string_view part = bytes.substr(0, ring_.size() - ring_at_);
    std::copy(part.begin(), part.end(), ring_.begin() + static_cast<std::ptrdiff_t>(ring_at_));
    ring_at_ = (ring_at_ + part.size()) % ring_.size();
    bytes.remove_prefix(part.size());
  }
}

model::StreamText StreamCapture::take() {
  std::rotate(ring_.begin(), ring_.begin() + static_cast<std::ptrdiff_t>(ring_at_), ring_.end());
  model::StreamText text;
  text.total_bytes = total_;
  text.dropped_bytes = total_ - head_.size() - ring_.size();
  text.head = std::exchange(head_, {});
  if (text.dropped_bytes == 0) {
    text.head += ring_;
  } else {
    text.tail = std::exchange(ring_, {});
  }
  ring_.clear();
  ring_at_ = 0;
  total_ = 0;
  return text;
}

}  // namespace hutch::engine
