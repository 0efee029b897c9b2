#include "image/config.h"

#ifndef TOML_EXCEPTIONS
#define TOML_EXCEPTIONS 0
#endif
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <boost/json/value_from.hpp>
#include <boost/json/value_to.hpp>
#include <sstream>

namespace hutch::image {
namespace {

namespace json = boost::json;

bool is_lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

Error config_error(std::string_view source, const toml::source_region& where, std::string text) {
  return Error{ErrorCode::config, Step::none, 0,
               fmt::format("{}:{}:{}: {}", source, where.begin.line, where.begin.column, text)};
}

bool stays_below(std::string_view path) {
  if (path.empty() || path.front() == '/') return false;
  std::istringstream parts{std::string(path)};
  for (std::string part; std::getline(parts, part, '/');) {
    if (part.empty() || part == "." || part == "..") return false;
  }
  return true;
}

// The parser of one image.toml. Every member function handles one key.
class Reader {
 public:
  Reader(std::string_view source, const toml::table& root) : source_(source), root_(root) {}

  Result<ImageConfig> read() {
    for (auto&& [key, node] : root_) TRY(read_key(key.str(), node));
    TRY(check());
    return std::move(config_);
  }

 private:
  Status wrong(const toml::node& node, std::string text) const {
    return fail(config_error(source_, node.source(), std::move(text)));
  }
  Status missing(std::string_view key) const {
    return fail(config_error(source_, root_.source(), fmt::format("`{}` is missing", key)));
  }

  Status read_key(std::string_view key, const toml::node& node) {
    if (key == "name") return read_string(node, key, config_.name);
    if (key == "python") return read_string(node, key, config_.python);
    if (key == "default_profile") return read_string(node, key, config_.default_profile);
    if (key == "build_space_bytes") return read_space(node);
    if (key == "env") return read_map(node, key, config_.env);
    if (key == "build_tools") return read_map(node, key, config_.build_tools);
    if (key == "profiles") return read_profiles(node);
    if (key == "home_links") return read_links(node);
    return wrong(node, fmt::format("unknown key `{}`", key));
  }

  Status read_string(const toml::node& node, std::string_view key, std::string& into) const {
    const auto* text = node.as_string();
    if (text == nullptr || text->get().empty()) {
      return wrong(node, fmt::format("`{}` must be a string that is not empty", key));
    }
    into = text->get();
    return {};
  }

  Status read_space(const toml::node& node) {
    const auto* number = node.as_integer();
    if (number == nullptr || number->get() < 0) {
      return wrong(node, "`build_space_bytes` must be a number of bytes");
    }
    config_.build_space_bytes = static_cast<std::uint64_t>(number->get());
    return {};
  }

  Status read_map(const toml::node& node, std::string_view name,
                  std::map<std::string, std::string>& into) const {
    const auto* table = node.as_table();
    if (table == nullptr) return wrong(node, fmt::format("`{}` must be a table", name));
    for (auto&& [key, value] : *table) {
      const auto* text = value.as_string();
      const bool bad_key = key.str().empty() || key.str().find('=') != std::string_view::npos;
      if (bad_key || text == nullptr || text->get().find('\0') != std::string::npos) {
        return wrong(value, fmt::format("`{}.{}` must be a string", name, key.str()));
      }
      into[std::string(key.str())] = text->get();
    }
    return {};
  }

  Status read_profiles(const toml::node& node) {
    const auto* table = node.as_table();
    if (table == nullptr) return wrong(node, "`profiles` must be a table");
    for (auto&& [key, value] : *table) {
      const auto* profile = value.as_table();
      if (profile == nullptr) return wrong(value, fmt::format("`{}` must be a table", key.str()));
      for (auto&& [inner, list] : *profile) {
        if (inner.str() != "imports") {
          return wrong(list, fmt::format("unknown key `profiles.{}.{}`", key.str(), inner.str()));
        }
        TRY(read_imports(list, config_.profiles[std::string(key.str())]));
      }
      config_.profiles.try_emplace(std::string(key.str()));
    }
    return {};
  }

  Status read_imports(const toml::node& node, std::vector<std::string>& into) const {
    const auto* list = node.as_array();
    if (list == nullptr) return wrong(node, "`imports` must be a list of module names");
    for (const toml::node& item : *list) {
      const auto* text = item.as_string();
      if (text == nullptr || text->get().empty()) {
        return wrong(item, "`imports` must be a list of module names");
      }
      into.push_back(text->get());
    }
    return {};
  }

  Status read_links(const toml::node& node) {
    const auto* list = node.as_array();
    if (list == nullptr) return wrong(node, "`home_links` must be a list of tables");
    for (const toml::node& item : *list) {
      const auto* table = item.as_table();
      if (table == nullptr) return wrong(item, "`home_links` must be a list of tables");
      HomeLink link;
      for (auto&& [key, value] : *table) {
        if (key.str() != "path" && key.str() != "target") {
          return wrong(value, fmt::format("unknown key `home_links.{}`", key.str()));
        }
        TRY(read_string(value, key.str(), key.str() == "path" ? link.path : link.target));
      }
      if (!stays_below(link.path)) return wrong(item, "`path` must stay below the home directory");
      if (!link.target.starts_with('/')) return wrong(item, "`target` must be an absolute path");
      config_.home_links.push_back(std::move(link));
    }
    return {};
  }

  Status check() const {
    if (!is_image_name(config_.name)) return missing("name");
    if (!config_.python.starts_with('/')) return missing("python");
    if (!config_.profiles.contains(config_.default_profile)) {
      return fail(config_error(source_, root_.source(),
                               fmt::format("`default_profile` is \"{}\", which is no profile",
                                           config_.default_profile)));
    }
    return {};
  }

  std::string_view source_;
  const toml::table& root_;
  ImageConfig config_;
};

}  // namespace

bool is_image_name(std::string_view name) {
  if (name.empty() || name.size() > 64 || !is_lower_or_digit(name.front())) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return is_lower_or_digit(c) || c == '.' || c == '_' || c == '-';
  });
}

bool is_digest(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

Result<ImageConfig> parse_image_toml(std::string_view text, std::string_view source) {
  const toml::parse_result parsed = toml::parse(text, source);
  if (!parsed) {
    return fail(
        config_error(source, parsed.error().source(), std::string(parsed.error().description())));
  }
  return Reader(source, parsed.table()).read();
}

json::value to_json(const ImageConfig& config) {
  json::array links;
  for (const HomeLink& link : config.home_links) {
    links.push_back({{"path", link.path}, {"target", link.target}});
  }
  return {{"name", config.name},
          {"python", config.python},
          {"env", json::value_from(config.env)},
          {"profiles", json::value_from(config.profiles)},
          {"default_profile", config.default_profile},
          {"home_links", std::move(links)},
          {"build_space_bytes", config.build_space_bytes},
          {"build_tools", json::value_from(config.build_tools)}};
}

Result<ImageConfig> config_from_json(const json::value& value) {
  // The file is one that this program wrote; whatever does not fit means that it is damaged.
  try {
    ImageConfig config;
    const json::object& root = value.as_object();
    config.name = json::value_to<std::string>(root.at("name"));
    config.python = json::value_to<std::string>(root.at("python"));
    config.env = json::value_to<std::map<std::string, std::string>>(root.at("env"));
    config.profiles =
        json::value_to<std::map<std::string, std::vector<std::string>>>(root.at("profiles"));
    config.default_profile = json::value_to<std::string>(root.at("default_profile"));
    config.build_space_bytes = json::value_to<std::uint64_t>(root.at("build_space_bytes"));
    config.build_tools = json::value_to<std::map<std::string, std::string>>(root.at("build_tools"));
    for (const json::value& link : root.at("home_links").as_array()) {
      config.home_links.push_back({json::value_to<std::string>(link.at("path")),
                                   json::value_to<std::string>(link.at("target"))});
    }
    return config;
  } catch (const std::exception& error) {
    return fail(ErrorCode::config,
                fmt::format("the image's metadata is damaged: {}", error.what()));
  }
}

}  // namespace hutch::image
