// /proc/PID/uid_map and gid_map: which ids of a user namespace are which outside
// (user_namespaces(7)). Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace hutch::plan {

struct IdMapping {
  std::uint64_t inside = 0;
  std::uint64_t outside = 0;
  std::uint64_t count = 0;
};

// The lines "inside outside count", up to the first that is none.
std::vector<IdMapping> parse_id_map(std::string_view text);

// Whether the map is that of the host itself: every id, as it is.
bool maps_every_id(const std::vector<IdMapping>& map);

// What `id` of the namespace is outside; `id` itself where nothing maps it.
std::uint32_t id_outside(const std::vector<IdMapping>& map, std::uint32_t id);

}  // namespace hutch::plan
