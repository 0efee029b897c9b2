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

std::string home_directory() {
  if (std::string home = absolute_from("HOME"); !home.empty()) return home;
  const passwd* entry = ::getpwuid(::geteuid());
  return entry != nullptr && entry->pw_dir[0] == '/' ? entry->pw_dir : "/tmp";
}

}  // namespace

std::string default_state_dir() {
  if (::geteuid() == 0) return "/var/lib/hutch";
  if (const std::string base = absolute_from("XDG_STATE_HOME"); !base.empty()) {
    return base + "/hutch";
  }
  return home_directory() + "/.local/state/hutch";
}

}  // namespace hutch::config
