#include "cli/version.h"

#include <fmt/format.h>

#include "cli/output.h"
#include "hutch_version.h"

namespace hutch::cli {

std::string version_line() { return fmt::format("hutch {}{}", kVersion, kTestingMark); }

void add_version_command(CLI::App& app, int& exit_code) {
  app.add_subcommand("version", "Print the version of this build")->callback([&exit_code] {
    exit_code = print_data(version_line() + "\n");
  });
}

}  // namespace hutch::cli
