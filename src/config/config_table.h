// The list of all settings: one row each, which reading, --set and docs/config.md are driven by.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "config/config.h"
#include "config/value.h"

namespace hutch::config {

enum class Kind {
  size,      // bytes: an integer, or a string with a unit
  count,     // an integer
  duration,  // milliseconds: an integer
  number,    // an integer or a fraction
  text,      // a string
  list,      // an array of strings; with --set, separated by commas
};

enum class Change { restart, live };

// Where in a Config the value lives.
using Slot =
    std::variant<std::uint64_t& (*)(Config&), std::uint32_t& (*)(Config&), double& (*)(Config&),
                 std::string& (*)(Config&), std::vector<std::string>& (*)(Config&)>;

struct Field {
  std::string_view key;
  Kind kind{};
  Slot slot;
  double min = 0;  // both ends are allowed values; meaningless for text and list
  double max = 0;
  std::string_view doc;            // sentences for docs/config.md; empty: not in there
  std::string_view default_words;  // instead of the default, where that depends on the host
  // Live: a server that runs takes a new value over at SIGHUP. Only what the unprivileged half
  // holds can be: the warden keeps what root has told it at the start.
  Change change = Change::restart;
};

// In the order of docs/config.md: the rows of one group (the part before the dot) stand together.
std::span<const Field> fields();

const Field* find_field(std::string_view key);

// Whether some key starts with `prefix` and a dot.
bool is_group(std::string_view prefix);

// `; did you mean "limits.cpus"?`, or where to look when nothing is near.
std::string suggestion(std::string_view unknown_key);

// Writes the value where the field lives. Error: a sentence that starts with the key.
Status assign(const Field& field, const Value& value, Config& config);

// The field's value as people write it; "" and "[]" for nothing.
std::string show(const Field& field, const Config& config);

// The field's value as it is: sizes and durations are integers.
Value value_in(const Field& field, const Config& config);

}  // namespace hutch::config
