// `hutch docs config`: prints the reference documents that are generated from the program itself.
#pragma once

#include <CLI/CLI.hpp>

namespace hutch::cli {

// `exit_code` has to outlive the parsing of `app`; 0 unless the text cannot be written.
void add_docs_command(CLI::App& app, int& exit_code);

}  // namespace hutch::cli
