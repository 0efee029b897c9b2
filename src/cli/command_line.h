// The command line: which commands there are, what they print as help, how a wrong call ends. Every
// command has a file of its own; this one only lists them.
#pragma once

#include "cli/server_life.h"

namespace hutch::cli {

// Builds the server's objects, serves until it is told to stop, and gives the exit code. main.cc
// has it, because only main.cc may know every room.
using Serve = int (*)(ServerLife life);

// Runs what the arguments say and gives the exit code. Data goes to standard output; errors are one
// line on standard error that starts with "hutch: ".
int run_command_line(int argc, const char* const* argv, Serve serve);

}  // namespace hutch::cli
