// `hutch run`: one program in one sandbox, from the command line. Understands what was typed and
// reads what is to be sent; run_session.h does the rest.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/command_line.h"

namespace hutch::cli {

// What stands behind the first `--` of a command line whose command is `run`, and is taken out of
// it: words for the program, whatever they look like.
std::vector<std::string> words_behind_dashes(int& argc, const char* const* argv);

// `exit_code` has to outlive the parsing of `app`. `behind` are the words behind `--`.
void add_run_command(CLI::App& app, Serve serve, std::vector<std::string> behind, int& exit_code);

}  // namespace hutch::cli
