#include "base/clock.h"

#include <ctime>

namespace hutch {
namespace {

Nanos read(clockid_t id) {
  timespec now{};
  ::clock_gettime(id, &now);
  return std::chrono::seconds(now.tv_sec) + Nanos(now.tv_nsec);
}

}  // namespace

Nanos SystemClock::mono() const { return read(CLOCK_MONOTONIC); }

std::int64_t SystemClock::wall_ms() const {
  return read(CLOCK_REALTIME) / std::chrono::milliseconds(1);
}

}  // namespace hutch
