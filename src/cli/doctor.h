// `hutch doctor`: what this host can do, and what the server of a state directory has on it.
// Changes nothing.
#pragma once

#include <CLI/CLI.hpp>

namespace hutch::cli {

// `exit_code` has to outlive the parsing of `app`; it becomes 69 when something that is needed is
// missing here, 77 when that is privilege.
void add_doctor_command(CLI::App& app, int& exit_code);

}  // namespace hutch::cli
