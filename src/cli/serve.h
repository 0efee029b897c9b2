// `hutch serve`: reads the flags and the configuration, and hands one Config over.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/command_line.h"

namespace hutch::cli {

// `exit_code` has to outlive the parsing of `app`.
void add_serve_command(CLI::App& app, Serve serve, int& exit_code);

}  // namespace hutch::cli
