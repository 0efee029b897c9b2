#include "plan/id_map.h"

#include <algorithm>
#include <sstream>
#include <string>

namespace hutch::plan {

std::vector<IdMapping> parse_id_map(std::string_view text) {
  std::istringstream numbers{std::string(text)};
  std::vector<IdMapping> map;
  for (IdMapping line; numbers >> line.inside >> line.outside >> line.count;) map.push_back(line);
  return map;
}

bool maps_every_id(const std::vector<IdMapping>& map) {
  constexpr std::uint64_t kEveryId = 4'294'967'295;
  return std::ranges::any_of(map, [](const IdMapping& line) {
    return line.inside == 0 && line.outside == 0 && line.count == kEveryId;
  });
}

std::uint32_t id_outside(const std::vector<IdMapping>& map, std::uint32_t id) {
  for (const IdMapping& line : map) {
    if (id < line.inside || id - line.inside >= line.count) continue;
    return static_cast<std::uint32_t>(line.outside + (id - line.inside));
  }
  return id;
}

}  // namespace hutch::plan
