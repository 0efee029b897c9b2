#include "plan/subordinate_ids.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

namespace hutch::plan {
namespace {

bool read_number(std::string_view text, std::uint32_t* number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), *number);
  return !text.empty() && parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size();
}

}  // namespace

std::vector<IdRange> parse_subordinate_ids(std::string_view text, std::string_view user,
                                           uid_t uid) {
  const std::string number = std::to_string(uid);
  std::vector<IdRange> ranges;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::array<std::string_view, 3> fields;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const std::size_t colon = i + 1 < fields.size() ? line.find(':') : line.size();
      if (colon == std::string_view::npos) break;
      fields[i] = line.substr(0, colon);
      line.remove_prefix(std::min(colon + 1, line.size()));
    }
    IdRange range;
    if (fields[0].empty() || (fields[0] != user && fields[0] != number)) continue;
    if (!read_number(fields[1], &range.first) || !read_number(fields[2], &range.count)) continue;
    ranges.push_back(range);
  }
  return ranges;
}

std::optional<IdRange> enough_ids(const std::vector<IdRange>& ranges, std::uint32_t count) {
  const auto found = std::ranges::find_if(
      ranges, [count](const IdRange& range) { return range.count >= count && range.first != 0; });
  if (found == ranges.end()) return std::nullopt;
  return IdRange{found->first, count};
}

}  // namespace hutch::plan
