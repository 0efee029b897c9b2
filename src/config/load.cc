// Fills a Config from a TOML file and from "key=value" settings, by the table.
#include <fmt/format.h>
#include <toml++/toml.h>

#include <charconv>

#include "base/sys.h"
#include "base/units.h"
#include "config/config.h"
#include "config/config_table.h"

namespace hutch::config {
namespace {

constexpr std::size_t kFileBytesMax = 1_MiB;

tl::unexpected<Error> at(const std::string& place, std::string_view sentence) {
  return fail(ErrorCode::config, fmt::format("{}: {}", place, sentence));
}

std::string place_of(const std::string& file, const toml::source_region& region) {
  return fmt::format("{}:{}:{}", file, region.begin.line, region.begin.column);
}

Value value_of(const toml::node& node) {
  if (const auto* number = node.as_integer()) return number->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* flag = node.as_boolean()) return flag->get();
  if (const auto* text = node.as_string()) return text->get();
  if (node.is_table()) return OtherValue{"a table"};
  const toml::array* array = node.as_array();
  if (array == nullptr) return OtherValue{"a date or a time"};
  std::vector<std::string> list;
  for (const toml::node& item : *array) {
    const auto* text = item.as_string();
    if (text == nullptr) return OtherValue{"an array with something else than strings"};
    list.push_back(text->get());
  }
  return list;
}

// Which of the settings were given, apart from their values.
struct Given {
  bool pool_target = false;
  bool pool_ceiling = false;
};

class Loader {
 public:
  Status read_file(const std::string& file);
  Status read_setting(const std::string& setting);
  Result<Config> finish();

 private:
  Status read_table(const std::string& file, const std::string& prefix, const toml::table& table);
  Status take(const Field& field, const Value& value, const std::string& place);

  Config config_;
  Given given_;
};

Status Loader::take(const Field& field, const Value& value, const std::string& place) {
  if (const Status status = assign(field, value, config_); !status) {
    return at(place, status.error().message);
  }
  given_.pool_target |= field.key == "pool.target";
  given_.pool_ceiling |= field.key == "pool.ceiling";
  return {};
}

Status Loader::read_table(const std::string& file, const std::string& prefix,
                          const toml::table& table) {
  for (const auto& [name, node] : table) {
    const std::string key = prefix + std::string(name.str());
    if (const Field* field = find_field(key)) {
      TRY(take(*field, value_of(node), place_of(file, node.source())));
      continue;
    }
    if (!is_group(key)) {
      return at(place_of(file, name.source()),
                fmt::format("unknown key \"{}\"{}", key, suggestion(key)));
    }
    const toml::table* group = node.as_table();
    if (group == nullptr) {
      return at(
          place_of(file, node.source()),
          fmt::format("{} is a group of settings: write [{}] and the settings below it", key, key));
    }
    TRY(read_table(file, key + ".", *group));
  }
  return {};
}

Status Loader::read_file(const std::string& file) {
  const Result<std::string> text = sys::read_file(file, kFileBytesMax);
  if (!text) return fail(ErrorCode::config, describe(text.error()));
  const toml::parse_result parsed = toml::parse(*text, file);
  if (!parsed) {
    return at(place_of(file, parsed.error().source()), parsed.error().description());
  }
  return read_table(file, "", parsed.table());
}

// What stands behind the "=" of a setting; the field says what it can only mean.
Value value_of_text(Kind kind, const std::string& text) {
  const char* const end = text.data() + text.size();
  if (kind == Kind::list) {
    std::vector<std::string> list;
    for (std::size_t from = 0; from < text.size();) {
      const std::size_t comma = std::min(text.find(',', from), text.size());
      list.push_back(text.substr(from, comma - from));
      from = comma + 1;
    }
    return list;
  }
  if (kind == Kind::text) return text;
  std::int64_t integer = 0;
  if (const auto got = std::from_chars(text.data(), end, integer);
      got.ec == std::errc{} && got.ptr == end) {
    return integer;
  }
  double number = 0;
  if (const auto got = std::from_chars(text.data(), end, number);
      kind == Kind::number && got.ec == std::errc{} && got.ptr == end) {
    return number;
  }
  return text;
}

Status Loader::read_setting(const std::string& setting) {
  const std::string place = "--set " + setting;
  const std::size_t equals = setting.find('=');
  if (equals == std::string::npos) return at(place, "write it as key=value");
  const std::string key = setting.substr(0, equals);
  const Field* field = find_field(key);
  if (field == nullptr) {
    return at(place, fmt::format("unknown key \"{}\"{}", key, suggestion(key)));
  }
  return take(*field, value_of_text(field->kind, setting.substr(equals + 1)), place);
}

Result<Config> Loader::finish() {
  // Who sets one of the two wants a pool of that size.
  if (given_.pool_target && !given_.pool_ceiling) config_.pool.ceiling = config_.pool.target;
  if (given_.pool_ceiling && !given_.pool_target) config_.pool.target = config_.pool.ceiling;
  TRY(check(config_));
  return config_;
}

}  // namespace

Result<Config> load(const Sources& sources) {
  Loader loader;
  if (!sources.file.empty()) TRY(loader.read_file(sources.file));
  for (const std::string& setting : sources.settings) TRY(loader.read_setting(setting));
  return loader.finish();
}

}  // namespace hutch::config
