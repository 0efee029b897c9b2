#include "config/state_dir.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

namespace hutch::config {
namespace {

// The variable's value, or nothing where it is no absolute path: the XDG rules say that relative
// ones are to be ignored.
std::string absolute_from(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || value[0] != '/') return {};
  std::string path = value;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

DefaultPlace home_directory() {
  if (std::string home = absolute_from("HOME"); !home.empty()) return {home, "HOME"};
  const passwd* entry = ::getpwuid(::geteuid());
  return {entry != nullptr && entry->pw_dir[0] == '/' ? entry->pw_dir : "/tmp", ""};
}

}  // namespace

DefaultPlace default_state_place() {
  if (::geteuid() == 0) return {kSystemStateDir, ""};
  if (const std::string base = absolute_from("XDG_STATE_HOME"); !base.empty()) {
    return {base + "/hutch", "XDG_STATE_HOME"};
  }
  DefaultPlace home = home_directory();
  return {home.path + "/.local/state/hutch", home.variable};
}

std::string default_state_dir() { return default_state_place().path; }

std::vector<std::string> default_files() {
  std::vector<std::string> files;
  if (::geteuid() == 0) files.emplace_back("/etc/hutch/config.toml");
  const std::string base = absolute_from("XDG_CONFIG_HOME");
  files.push_back((base.empty() ? home_directory().path + "/.config" : base) +
                  "/hutch/server.toml");
  return files;
}

}  // namespace hutch::config
