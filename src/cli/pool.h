// `hutch pool [--watch]`: the warm pool of a server, once or until somebody stops looking.
#pragma once

#include <CLI/CLI.hpp>

namespace hutch::cli {

// `exit_code` has to outlive the parsing of `app`: 69 when no server answers, 70 when what answers
// is none of ours, 130 when Ctrl-C ended --watch.
void add_pool_command(CLI::App& app, int& exit_code);

}  // namespace hutch::cli
