// `hutch version`: which build this is.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace hutch::cli {

// "hutch 0.1.0", and " testing=1" behind it in builds with fakes and failpoints.
std::string version_line();

// `exit_code` has to outlive the parsing of `app`; this command leaves it 0.
void add_version_command(CLI::App& app, int& exit_code);

}  // namespace hutch::cli
