// `hutch docs config`: prints the reference documents that are generated from the program itself.
#pragma once

#include <CLI/CLI.hpp>

namespace hutch::cli {

// `exit_code` has to outlive the parsing of `app`; this command leaves it 0.
void add_docs_command(CLI::App& app, int& exit_code);

}  // namespace hutch::cli
