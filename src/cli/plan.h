// `hutch plan`: every decision about a run, printed before anything is done. Changes nothing.
#pragma once

#include <CLI/CLI.hpp>

namespace hutch::cli {

// `exit_code` has to outlive the parsing of `app`.
void add_plan_command(CLI::App& app, int& exit_code);

}  // namespace hutch::cli
