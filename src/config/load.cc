// Fills a Config from a TOML file and from "key=value" settings, by the table.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <charconv>

#include "base/sys.h"
#include "base/units.h"
#include "config/config.h"
#include "config/config_table.h"

namespace hutch::config {
namespace {

constexpr std::size_t kFileBytesMax = 1_MiB;

// The same failure as one of the settings, errno kept.
tl::unexpected<Error> unread(Error cause) {
  cause.code = ErrorCode::config;
  return fail(std::move(cause));
}

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

class Loader {
 public:
  explicit Loader(const Sources& sources);
  Status read_default_file();
  Status read_file(const std::string& file);
  // `flag` is empty for what came with --set.
  Status read_setting(const std::string& setting, const std::string& flag);
  Result<Loaded> finish();

 private:
  Status read_table(const std::string& file, const std::string& prefix, const toml::table& table);
  Status take(const Field& field, const Value& value, const std::string& place, Origin origin);
  Origin& origin_of(std::string_view key);
  void follow(std::string_view follower, std::string_view leader);

  Loaded loaded_;
};

Loader::Loader(const Sources& sources) {
  loaded_.config.sources = sources;
  loaded_.config.state_dir = sources.state_dir.path;
  loaded_.origins.resize(fields().size());
  if (!sources.state_dir.variable.empty()) {
    origin_of("state_dir") = {Origin::Kind::environment, sources.state_dir.variable};
  }
}

Origin& Loader::origin_of(std::string_view key) {
  const Field* field = find_field(key);
  return loaded_.origins[static_cast<std::size_t>(field - fields().data())];
}

Status Loader::take(const Field& field, const Value& value, const std::string& place,
                    Origin origin) {
  if (const Status status = assign(field, value, loaded_.config); !status) {
    return at(place, status.error().message);
  }
  origin_of(field.key) = std::move(origin);
  return {};
}

Status Loader::read_table(const std::string& file, const std::string& prefix,
                          const toml::table& table) {
  for (const auto& [name, node] : table) {
    const std::string key = prefix + std::string(name.str());
    if (const Field* field = find_field(key)) {
      TRY(take(*field, value_of(node), place_of(file, node.source()),
               {Origin::Kind::file, fmt::format("{}:{}", file, node.source().begin.line)}));
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

// Whoever can write to a file that nobody named decides as whom and how the server runs.
Status check_owner(const std::string& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) {
    return fail(sys::last_error(ErrorCode::config, Step::none, "cannot look at " + file));
  }
  if (info.st_uid != 0 && info.st_uid != ::geteuid()) {
    return at(file, fmt::format("the file belongs to uid {1}, and this is uid {2}: run: chown {2} "
                                "{0}, or name a file with --config",
                                file, info.st_uid, ::geteuid()));
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return at(file, fmt::format("the file is writable by other users: run: chmod go-w {}", file));
  }
  return {};
}

Status Loader::read_default_file() {
  for (const std::string& file : loaded_.config.sources.default_files) {
    const Result<Fd> there = sys::open(file, O_PATH);
    if (!there && there.error().code == ErrorCode::not_found) continue;
    if (!there) return unread(there.error());
    TRY(check_owner(file));
    return read_file(file);
  }
  return {};
}

Status Loader::read_file(const std::string& file) {
  loaded_.file = file;
  const Result<std::string> text = sys::read_file(file, kFileBytesMax);
  if (!text) return unread(text.error());
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

Status Loader::read_setting(const std::string& setting, const std::string& flag) {
  const std::string place = (flag.empty() ? "--set" : flag) + " " + setting;
  const std::size_t equals = setting.find('=');
  if (equals == std::string::npos) return at(place, "write it as key=value");
  const std::string key = setting.substr(0, equals);
  const Field* field = find_field(key);
  if (field == nullptr) {
    return at(place, fmt::format("unknown key \"{}\"{}", key, suggestion(key)));
  }
  Origin origin{Origin::Kind::setting, ""};
  if (!flag.empty()) origin = {Origin::Kind::flag, flag};
  return take(*field, value_of_text(field->kind, setting.substr(equals + 1)), place, origin);
}

void Loader::follow(std::string_view follower, std::string_view leader) {
  if (origin_of(follower).kind == Origin::Kind::standard &&
      origin_of(leader).kind != Origin::Kind::standard) {
    origin_of(follower) = {Origin::Kind::follows, std::string(leader)};
  }
}

Result<Loaded> Loader::finish() {
  // Who sets one of the two wants a pool of that size.
  follow("pool.ceiling", "pool.target");
  follow("pool.target", "pool.ceiling");
  Pool& pool = loaded_.config.pool;
  if (origin_of("pool.ceiling").kind == Origin::Kind::follows) pool.ceiling = pool.target;
  if (origin_of("pool.target").kind == Origin::Kind::follows) pool.target = pool.ceiling;
  TRY(check(loaded_.config));
  return std::move(loaded_);
}

}  // namespace

std::string origin_text(const Origin& origin) {
  switch (origin.kind) {
    case Origin::Kind::standard: return "default";
    case Origin::Kind::environment: return "environment " + origin.place;
    case Origin::Kind::file:
    case Origin::Kind::flag: return origin.place;
    case Origin::Kind::setting: return "--set";
    case Origin::Kind::follows: return "follows " + origin.place;
  }
  return "";
}

Result<Loaded> load_with_origins(const Sources& sources) {
  Loader loader(sources);
  if (!sources.file.empty()) {
    TRY(loader.read_file(sources.file));
  } else {
    TRY(loader.read_default_file());
  }
  for (const std::string& setting : sources.settings) TRY(loader.read_setting(setting, ""));
  for (const Sources::Flag& flag : sources.flags) {
    TRY(loader.read_setting(flag.setting, flag.name));
  }
  return loader.finish();
}

Result<Config> load(const Sources& sources) { return TRY(load_with_origins(sources)).config; }

}  // namespace hutch::config
