#include "engine/live_output.h"

#include <utility>

namespace hutch::engine {
namespace {

// Small pieces of one stream that wait behind each other become one of up to this size.
constexpr std::size_t kJoinBytesMax = 64_KiB;
// What a piece of a few bytes really takes.
constexpr std::size_t kPieceCost = 64;

}  // namespace

void LiveOutput::begin() {
  if (std::exchange(begun_, true)) return;
  if (changed_) changed_();
}

void LiveOutput::add(OutputStream stream, std::string_view bytes) {
  if (bytes.empty()) return;
  std::size_t& held = held_[index(stream)];
  held += bytes.size();
  const bool joins = !pieces_.empty() && pieces_.back().stream == stream &&
                     pieces_.back().bytes.size() + bytes.size() <= kJoinBytesMax;
  if (joins) {
    pieces_.back().bytes += bytes;
  } else {
    held += kPieceCost;
    pieces_.push_back({stream, std::string(bytes)});
  }
  if (changed_) changed_();
}

void LiveOutput::when_room(OutputStream stream, std::function<void()> callback) {
  room_[index(stream)] = std::move(callback);
}

std::optional<OutputPiece> LiveOutput::take() {
  if (pieces_.empty()) return std::nullopt;
  OutputPiece piece = std::move(pieces_.front());
  pieces_.pop_front();
  held_[index(piece.stream)] -= piece.bytes.size() + kPieceCost;
  if (!full(piece.stream)) {
    if (const auto room = std::exchange(room_[index(piece.stream)], {})) room();
  }
  return piece;
}

}  // namespace hutch::engine
