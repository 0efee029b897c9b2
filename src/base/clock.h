// Where time comes from. Passed in, so that tests move it by hand; deadlines use only mono().
#pragma once

#include <chrono>
#include <cstdint>

namespace hutch {

using Nanos = std::chrono::nanoseconds;

class Clock {
 public:
  virtual ~Clock() = default;
  // CLOCK_MONOTONIC: never jumps when somebody sets the wall clock.
  virtual Nanos mono() const = 0;
  // Milliseconds since 1970, UTC; for people and logs, never for deadlines.
  virtual std::int64_t wall_ms() const = 0;
};

class SystemClock final : public Clock {
 public:
  Nanos mono() const override;
  std::int64_t wall_ms() const override;
};

// A clock that stands still until a test moves it.
class FakeClock final : public Clock {
 public:
  Nanos mono() const override { return mono_; }
  std::int64_t wall_ms() const override { return mono_ / std::chrono::milliseconds(1); }
  void advance(Nanos by) { mono_ += by; }

 private:
  Nanos mono_{std::chrono::seconds(1000)};
};

}  // namespace hutch
