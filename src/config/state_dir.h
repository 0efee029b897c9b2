// Where the state directory lies when nobody names one. Reads the environment; creates nothing.
#pragma once

#include <string>

namespace hutch::config {

// /var/lib/hutch for root; else $XDG_STATE_HOME/hutch, and ~/.local/state/hutch where that variable
// is unset, empty or relative. Always absolute, without a slash at the end.
std::string default_state_dir();

}  // namespace hutch::config
