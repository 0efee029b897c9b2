#include "config/value.h"

#include <array>
#include <charconv>
#include <limits>
#include <utility>

namespace hutch::config {
namespace {

struct Unit {
  std::string_view name;
  unsigned shift;
};

// The largest first, as format_size() tries them.
constexpr std::array<Unit, 5> kUnits{Unit{"TiB", 40}, Unit{"GiB", 30}, Unit{"MiB", 20},
                                     Unit{"KiB", 10}, Unit{"B", 0}};

}  // namespace

std::string_view value_kind(const Value& value) {
  if (const auto* other = std::get_if<OtherValue>(&value)) return other->name;
  constexpr std::array<std::string_view, 5> kNames{"an integer", "a number", "a boolean",
                                                   "a string", "an array of strings"};
  return kNames[value.index()];
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  const std::string_view suffix = text.substr(static_cast<std::size_t>(end - text.data()));
  if (suffix.empty()) return number;
  for (const Unit& unit : kUnits) {
    if (suffix != unit.name) continue;
    if (number > std::numeric_limits<std::uint64_t>::max() >> unit.shift) return std::nullopt;
    return number << unit.shift;
  }
  return std::nullopt;
}

std::string format_size(std::uint64_t bytes) {
  for (const Unit& unit : kUnits) {
    const std::uint64_t whole = bytes >> unit.shift;
    if (whole != 0 && whole << unit.shift == bytes)
      return std::to_string(whole) + std::string(unit.name);
  }
  return "0B";
}

}  // namespace hutch::config
