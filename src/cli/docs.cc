#include "cli/docs.h"

#include "cli/output.h"
#include "config/config.h"

namespace hutch::cli {

void add_docs_command(CLI::App& app, int& exit_code) {
  CLI::App* docs = app.add_subcommand("docs", "Print a reference document");
  docs->require_subcommand(1);
  CLI::App* config = docs->add_subcommand("config", "All settings, as Markdown");
  config->callback([&exit_code] { exit_code = print_data(config::reference_markdown()); });
}

}  // namespace hutch::cli
