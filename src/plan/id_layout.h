// Which user ids a server takes for its sandboxes: the numbers that warden, doctor and plan share.
// Values.
#pragma once

#include <cstdint>

#include "plan/subordinate_ids.h"

namespace hutch::plan {

// A server of root takes the lowest of these ranges that nobody has, above everything that
// distributions hand out.
inline constexpr IdRange kServerRange{0x7001'0000, 65'536};  // the first one
inline constexpr std::uint32_t kServerRanges = 256;
constexpr IdRange server_range(std::uint32_t number) {
  return {kServerRange.first + number * kServerRange.count, kServerRange.count};
}

// Inside the user namespace of an ordinary user 0 is the user, and 1 to 65,536 are the user's
// subordinate ids. The server becomes one of them; sandboxes get blocks below it.
inline constexpr std::uint32_t kSubordinateIds = 65'536;
inline constexpr std::uint32_t kSubordinateBlock = 4'096;
inline constexpr std::uint32_t kSubordinateServerId = 65'000;

// Where the slots begin in a range or block, two ids each; what is below is the zone's own.
inline constexpr std::uint32_t kServerFirstSlot = 10'000;
inline constexpr std::uint32_t kSubordinateFirstSlot = 1'024;

}  // namespace hutch::plan
