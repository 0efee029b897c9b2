// Runs one external program to its end: output line by line, errors to a log, its whole process
// group gone when somebody interrupts. Knows nothing about images.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hutch::image {

struct Command {
  std::vector<std::string> argv;  // argv[0] is looked up in PATH
  std::string log_path;           // standard error is appended here; created when missing
  std::function<void(std::string_view)> on_line;  // one line of standard output, without its end
  std::function<void()> on_interrupt;             // called before the program is ended
  int interrupt_fd = -1;  // readable: end the program and return `cancelled`; -1: never
  // The program is `unshare --fork --pid ...`: its child is the init of a pid namespace, and
  // killing that child takes every process of the namespace along.
  enum class Kind { plain, namespaced } kind = Kind::plain;
};

struct Exit {
  int code = 0;            // exit status, or 128 + signal
  std::string tail;        // the last 64 KiB of standard error
  bool disk_full = false;  // the program complained about space at any time
};

// `not_found` when there is no such program, `cancelled` after an interrupt; when it returns, no
// process of the command is left.
Result<Exit> run(const Command& command);

// The absolute path of a program in PATH or in the sbin directories; empty when there is none.
std::string find_program(std::string_view name);

}  // namespace hutch::image
