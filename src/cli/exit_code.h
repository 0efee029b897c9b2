// How `hutch` ends. The numbers are a promise to scripts and to service managers; they follow
// sysexits.h where that has a fitting one.
#pragma once

#include <string_view>

#include "base/error.h"

namespace hutch::cli {

enum class ExitCode : int {
  ok = 0,
  usage = 64,        // a flag, a setting or the configuration file
  unsupported = 69,  // this kernel or this host lacks something that is needed
  internal = 70,     // a failure of ours, or of the system under us
  state = 73,        // the state directory is in use, not writable, or full
  port = 75,         // the port of a listener is taken
  no_image = 76,     // the image was never built
  privilege = 77,    // not started as root
};

ExitCode exit_code_for(ErrorCode code);

// The lines of `hutch serve --help` and of docs/operations.md.
std::string_view exit_code_help();

// Prints "hutch: " and the error in one line on standard error, and gives its exit code.
int report(const Error& error);

}  // namespace hutch::cli
