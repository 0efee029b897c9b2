#include "cli/serve.h"

#include <string>

#include "cli/config_flags.h"
#include "cli/exit_code.h"

namespace hutch::cli {

void add_serve_command(CLI::App& app, Serve serve, int& exit_code) {
  CLI::App* command = app.add_subcommand("serve", "Serve until a signal says stop");
  const std::shared_ptr<ConfigFlags> flags = add_config_flags(*command);
  add_listener_flags(*command, *flags);
  command->footer(
      "\nOne line on standard output says when runs are taken, and where:\n"
      "  hutch ready internal=http://127.0.0.1:8700 public=http://127.0.0.1:8080\n"
      "The log goes to standard error, one JSON object a line. SIGTERM and SIGINT let runs in\n"
      "flight finish, up to 65 s; a second one stops at once. SIGHUP reads the settings "
      "again.\n\n" +
      std::string(exit_code_help()));
  command->callback([flags, serve, &exit_code] {
    const Result<config::Config> config = load_config(*flags);
    exit_code = config ? serve({.config = *config}) : report(config.error());
  });
}

}  // namespace hutch::cli
