// Where the state directory and the settings lie when nobody names a place. Reads the environment;
// creates nothing.
#pragma once

#include <string>
#include <vector>

namespace hutch::config {

// The state directory of the host's root.
inline constexpr const char* kSystemStateDir = "/var/lib/hutch";

struct DefaultPlace {
  std::string path;
  std::string variable;  // of the environment, which it was made from; empty for none
};

DefaultPlace default_state_place();

// /var/lib/hutch for root; else $XDG_STATE_HOME/hutch, and ~/.local/state/hutch where that variable
// is unset, empty or relative. Always absolute, without a slash at the end.
std::string default_state_dir();

// The files that settings are read from when no file is named: the first of them that exists. For
// root /etc/hutch/config.toml comes first; then $XDG_CONFIG_HOME/hutch/server.toml, or
// ~/.config/hutch/server.toml where that variable is unset, empty or relative.
std::vector<std::string> default_files();

}  // namespace hutch::config
