// What an image says about itself: the interpreter, the environment, what warm interpreters import.
// Owns the format of image.toml and its JSON twin in the store; reads no file itself.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hutch::image {

// A symbolic link that every fresh home directory starts with.
struct HomeLink {
  std::string path;    // below the home directory, no "..", not absolute
  std::string target;  // absolute path inside the image

  bool operator==(const HomeLink&) const = default;
};

struct ImageConfig {
  std::string name;
  std::string python;                      // absolute path inside the image
  std::map<std::string, std::string> env;  // the whole environment, beside what the sandbox adds
  std::map<std::string, std::vector<std::string>> profiles;  // profile -> modules to import
  std::string default_profile;                               // a key of `profiles`
  std::vector<HomeLink> home_links;
  std::uint64_t build_space_bytes = 0;  // free space a build asks for beforehand; 0: not checked
  // Commands that a build needs, each with the Debian package that brings it.
  std::map<std::string, std::string> build_tools;

  bool operator==(const ImageConfig&) const = default;
};

// `source` names the file in errors. Every error is `config` and carries line and column.
Result<ImageConfig> parse_image_toml(std::string_view text, std::string_view source);

boost::json::value to_json(const ImageConfig& config);
Result<ImageConfig> config_from_json(const boost::json::value& value);

// What a name of an image may be: 1 to 64 of a-z 0-9 . _ -, not starting with a dot or a dash.
bool is_image_name(std::string_view name);
// 64 lower-case hexadecimal digits.
bool is_digest(std::string_view text);

}  // namespace hutch::image
