// `hutch image build | ls | unpack | path | rm | prune`. Turns words into calls of the image room
// and answers into text; data goes to standard output, chatter to standard error.
#pragma once

#include <CLI/CLI.hpp>

namespace hutch::cli {

// Adds the command `image`. Running one of its verbs sets `exit_code`, which has to outlive the
// parsing of `app`: an ExitCode, or 128 + signal when a build was interrupted and has cleaned up
// behind itself (130 for Ctrl-C).
void add_image_commands(CLI::App& app, int& exit_code);

}  // namespace hutch::cli
