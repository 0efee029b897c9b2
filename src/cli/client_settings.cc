#include "cli/client_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string_view>
#include <vector>

#include "base/sys.h"
#include "base/units.h"

namespace hutch::cli {
namespace {

constexpr const char* kDefaultUrl = "http://127.0.0.1:8700";
constexpr std::size_t kFileBytesMax = 1_MiB;
constexpr std::size_t kKeyBytesMax = 4096;

tl::unexpected<Error> refuse(std::string sentence) {
  return fail(ErrorCode::config, std::move(sentence));
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

struct Profile {
  std::string url;
  std::string internal_url;
  std::string api_key;
};

struct ClientFile {
  std::string chosen;  // `profile = "NAME"`
  std::map<std::string, Profile, std::less<>> profiles;
};

std::string place_of(const std::string& path, const toml::source_region& region) {
  return fmt::format("{}:{}:{}", path, region.begin.line, region.begin.column);
}

Result<std::string> text_at(const std::string& path, std::string_view key, const toml::node& node) {
  const toml::value<std::string>* text = node.as_string();
  if (text != nullptr) return text->get();
  return refuse(fmt::format("{}: {} must be a string", place_of(path, node.source()), key));
}

Result<Profile> read_profile(const std::string& path, std::string_view name,
                             const toml::table& table) {
  Profile profile;
  const std::map<std::string_view, std::string*> keys{{"url", &profile.url},
                                                      {"internal_url", &profile.internal_url},
                                                      {"api_key", &profile.api_key}};
  for (const auto& [key, node] : table) {
    const auto found = keys.find(key.str());
    if (found == keys.end()) {
      return refuse(fmt::format(
          "{}: unknown key \"{}\" in profile {}; a profile has url, internal_url and api_key",
          place_of(path, key.source()), key.str(), name));
    }
    *found->second = TRY(text_at(path, key.str(), node));
  }
  return profile;
}

Result<ClientFile> parse_file(const std::string& path, const std::string& text) {
  const toml::parse_result parsed = toml::parse(text, path);
  if (!parsed) {
    return refuse(fmt::format("{}: {}", place_of(path, parsed.error().source()),
                              parsed.error().description()));
  }
  ClientFile file;
  for (const auto& [key, node] : parsed.table()) {
    if (key.str() == "profile") {
      file.chosen = TRY(text_at(path, "profile", node));
      continue;
    }
    const toml::table* profiles = key.str() == "profiles" ? node.as_table() : nullptr;
    if (profiles == nullptr) {
      return refuse(
          fmt::format("{}: \"{}\" is not for here; the file has profile = \"NAME\" and "
                      "[profiles.NAME] with url, internal_url and api_key",
                      place_of(path, key.source()), key.str()));
    }
    for (const auto& [name, entry] : *profiles) {
      const toml::table* table = entry.as_table();
      if (table == nullptr) {
        return refuse(fmt::format("{}: write [profiles.{}] and its keys below it",
                                  place_of(path, entry.source()), name.str()));
      }
      file.profiles[std::string(name.str())] = TRY(read_profile(path, name.str(), *table));
    }
  }
  return file;
}

// A key that others can read is theirs as well.
Status check_secrecy(const std::string& path, const ClientFile& file) {
  const bool has_key =
      std::any_of(file.profiles.begin(), file.profiles.end(),
                  [](const auto& profile) { return !profile.second.api_key.empty(); });
  struct stat info {};
  if (!has_key || ::stat(path.c_str(), &info) != 0) return {};
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) == 0) return {};
  return refuse(
      fmt::format("{0} holds an api_key and is open to other users: run: chmod 600 {0}", path));
}

Result<ClientFile> read_file(const std::string& path) {
  if (path.empty()) return ClientFile{};
  const Result<std::string> text = sys::read_file(path, kFileBytesMax);
  if (!text && text.error().code == ErrorCode::not_found) return ClientFile{};
  if (!text) return refuse(describe(text.error()));
  ClientFile file = TRY(parse_file(path, *text));
  TRY(check_secrecy(path, file));
  return file;
}

// The profile that counts, and whether there is one.
Result<Profile> choose(const ClientFile& file, const std::string& name, std::string_view from,
                       const std::string& path) {
  if (name.empty()) return Profile{};
  const auto found = file.profiles.find(name);
  if (found != file.profiles.end()) return found->second;
  if (path.empty()) {
    return refuse(
        fmt::format("{} names the profile \"{}\", and without HOME there is no file of "
                    "profiles",
                    from, name));
  }
  std::vector<std::string> known;
  for (const auto& [other, profile] : file.profiles) known.push_back(other);
  return refuse(fmt::format("{} names the profile \"{}\", and {} has {}", from, name, path,
                            known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
}

// It becomes a line of a request: whatever could end that line is refused.
Status check_key(std::string_view key, std::string_view from) {
  const bool is_clean =
      std::all_of(key.begin(), key.end(), [](char c) { return c > 32 && c < 127; });
  if (is_clean && key.size() <= kKeyBytesMax) return {};
  return refuse(
      fmt::format("{} must be at most {} printable characters without spaces", from, kKeyBytesMax));
}

}  // namespace

ClientEnvironment client_environment() {
  ClientEnvironment environment{.url = variable("HUTCH_URL"),
                                .internal_url = variable("HUTCH_INTERNAL_URL"),
                                .api_key = variable("HUTCH_API_KEY"),
                                .profile = variable("HUTCH_PROFILE")};
  std::string directory = variable("XDG_CONFIG_HOME");
  const std::string home = variable("HOME");
  if (!directory.starts_with('/')) directory = home.starts_with('/') ? home + "/.config" : "";
  if (!directory.empty()) environment.config_file = directory + "/hutch/config.toml";
  return environment;
}

Result<ClientSettings> load_client_settings(const ClientFlags& flags,
                                            const ClientEnvironment& environment) {
  const ClientFile file = TRY(read_file(environment.config_file));
  std::string name = file.chosen;
  std::string from = environment.config_file;
  if (!environment.profile.empty()) name = environment.profile, from = "HUTCH_PROFILE";
  if (!flags.profile.empty()) name = flags.profile, from = "--profile";
  const Profile profile = TRY(choose(file, name, from, environment.config_file));

  ClientSettings settings;
  std::string internal = kDefaultUrl;
  const auto take = [&](const std::string& url, const std::string& origin) {
    if (url.empty()) return;
    internal = url;
    settings.internal_is_default = false;
    settings.internal_origin = origin;
  };
  take(profile.internal_url, "profile " + name);
  take(environment.internal_url, "HUTCH_INTERNAL_URL");
  take(flags.url, "--url");
  Result<ServerAddress> address = parse_server_url(internal);
  if (!address) return refuse(settings.internal_origin + ": " + address.error().message);
  settings.internal = std::move(*address);

  settings.url = environment.url.empty() ? profile.url : environment.url;
  settings.api_key = environment.api_key.empty() ? profile.api_key : environment.api_key;
  TRY(check_key(settings.api_key, environment.api_key.empty() ? "profile " + name + ": api_key"
                                                              : std::string("HUTCH_API_KEY")));
  return settings;
}

}  // namespace hutch::cli
