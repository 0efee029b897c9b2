#include "cli/output.h"

#include <cstdio>

#include "cli/exit_code.h"

namespace hutch::cli {

int print_data(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return 0;
  print_chatter("hutch: cannot write to standard output\n");
  return static_cast<int>(ExitCode::internal);
}

void print_chatter(std::string_view text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
}

}  // namespace hutch::cli
