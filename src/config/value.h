// What a setting's value can be, whatever it was written in, and how sizes are spelled. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hutch::config {

// Something that no setting takes, such as a date; `name` says what.
struct OtherValue {
  std::string_view name;
};

using Value =
    std::variant<std::int64_t, double, bool, std::string, std::vector<std::string>, OtherValue>;

// "an integer", "a string", ... for messages.
std::string_view value_kind(const Value& value);

// "512MiB", "1GiB", "4096B", "4096": whole numbers, units B KiB MiB GiB TiB. Nothing for the rest,
// "512MB" included, because people disagree about what that is.
std::optional<std::uint64_t> parse_size(std::string_view text);

// The shortest spelling that parse_size() gives back exactly.
std::string format_size(std::uint64_t bytes);

}  // namespace hutch::config
