// `hutch config [KEY]`: what the settings come to, and where each value comes from. Reads what
// `hutch serve` would read with the same flags, and refuses what that would refuse.
#pragma once

#include <CLI/CLI.hpp>

namespace hutch::cli {

// `exit_code` has to outlive the parsing of `app`; 64 for settings that make no sense and for a key
// that there is not.
void add_config_command(CLI::App& app, int& exit_code);

}  // namespace hutch::cli
