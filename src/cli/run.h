// `hutch run`: one program in one sandbox, from the command line. Understands what was typed and
// reads what is to be sent; run_session.h does the rest.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/command_line.h"

namespace hutch::cli {

// `exit_code` has to outlive the parsing of `app`.
void add_run_command(CLI::App& app, Serve serve, int& exit_code);

}  // namespace hutch::cli
