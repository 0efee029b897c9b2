#include "cli/version.h"

#include <fmt/format.h>

#include <memory>

#include "base/json.h"
#include "cli/output.h"
#include "cli/state_version.h"
#include "hutch_commit.h"
#include "hutch_version.h"

namespace hutch::cli {
namespace {

#if defined(__clang__)
constexpr std::string_view kCompiler = __VERSION__;  // begins with "Clang"
#else
constexpr std::string_view kCompiler = "g++ " __VERSION__;
#endif
// What stands in front of every path of the HTTP API.
constexpr std::string_view kApiVersion = "v1";

std::string as_json() {
  json::Writer out;
  out.begin_object();
  out.key("version").string(kVersion);
  out.key("commit").string(kCommit);
  out.key("compiler").string(kCompiler);
  out.key("testing").boolean(!kTestingMark.empty());
  out.key("api").string(kApiVersion);
  out.key("state_version").unsigned_integer(kStateVersion);
  out.key("oldest_state_version").unsigned_integer(kOldestStateVersion);
  out.end_object();
  return out.take() + "\n";
}

}  // namespace

std::string version_line() { return fmt::format("hutch {}{}", kVersion, kTestingMark); }

void add_version_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("version", "Print the version of this build");
  auto wants_json = std::make_shared<bool>(false);
  command->add_flag("--json", *wants_json,
                    "Commit, compiler, and the versions of API and state directory as well");
  command->callback([wants_json, &exit_code] {
    exit_code = print_data(*wants_json ? as_json() : version_line() + "\n");
  });
}

}  // namespace hutch::cli
