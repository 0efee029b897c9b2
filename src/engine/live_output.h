// What a running program has written and its reader has not taken yet: pieces of both streams, in
// the order in which they were read. Bounded: where the reader is slow, the engine stops reading
// that stream's pipe, and the program waits as on any full pipe. One thread; never looks at what
// the bytes mean.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace hutch::engine {

enum class OutputStream : std::uint8_t { out, err };

struct OutputPiece {
  OutputStream stream{};
  std::string bytes;
};

class LiveOutput {
 public:
  // `bytes_max` of each stream, counted with what the pieces cost beside their bytes.
  explicit LiveOutput(std::size_t bytes_max = 1_MiB) : bytes_max_(bytes_max) {}
  LiveOutput(const LiveOutput&) = delete;
  LiveOutput& operator=(const LiveOutput&) = delete;

  // For the engine.

  // The program has its code: it runs now, or nothing ran. Later calls change nothing.
  void begin();
  // After begin(). Takes them in any case: what stands in a pipe at the program's end belongs to
  // the run, however far behind the reader is.
  void add(OutputStream stream, std::string_view bytes);
  bool full(OutputStream stream) const { return held_[index(stream)] >= bytes_max_; }
  // Called once, from inside take(), as soon as the stream is not full any more.
  void when_room(OutputStream stream, std::function<void()> callback);

  // For the reader.

  bool begun() const { return begun_; }
  // The oldest piece; at most 64 KiB unless it was read in one larger portion.
  std::optional<OutputPiece> take();
  std::size_t held_bytes() const { return held_[0] + held_[1]; }
  // Called after each begin() and add(), from inside them; an empty function takes it away.
  void on_change(std::function<void()> callback) { changed_ = std::move(callback); }

 private:
  static std::size_t index(OutputStream stream) { return static_cast<std::size_t>(stream); }

  const std::size_t bytes_max_;
  bool begun_ = false;
  std::deque<OutputPiece> pieces_;
  std::array<std::size_t, 2> held_{};
  std::array<std::function<void()>, 2> room_;
  std::function<void()> changed_;
};

}  // namespace hutch::engine
