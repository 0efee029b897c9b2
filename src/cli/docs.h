// `hutch docs [TOPIC | --full]`: the reference documents, generated from the program itself: the
// tree of commands, the table of settings, the description of the API that it serves.
#pragma once

#include <CLI/CLI.hpp>

namespace hutch::cli {

// The tree is read when the command runs. `exit_code` has to outlive the parsing of `app`; 0 unless
// the text cannot be written.
void add_docs_command(CLI::App& app, int& exit_code);

}  // namespace hutch::cli
