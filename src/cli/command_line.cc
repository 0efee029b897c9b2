#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/completion.h"
#include "cli/config.h"
#include "cli/docs.h"
#include "cli/doctor.h"
#include "cli/exit_code.h"
#include "cli/image.h"
#include "cli/man.h"
#include "cli/output.h"
#include "cli/plan.h"
#include "cli/pool.h"
#include "cli/run.h"
#include "cli/run_exit_code.h"
#include "cli/serve.h"
#include "cli/version.h"

namespace hutch::cli {
namespace {

constexpr const char* kFooter = R"--(
Start here:
  hutch doctor                   what this host can do, and what it lacks
  hutch image build python       once, a few minutes
  hutch run -c 'print(2**32)'    a first answer; `hutch serve` keeps sandboxes warm for more)--";

void add_help_command(CLI::App& app, int& exit_code) {
  CLI::App* help = app.add_subcommand("help", "Show the help of hutch, or of one command");
  auto topic = std::make_shared<std::vector<std::string>>();
  help->add_option("command", *topic, "The command, such as `serve` or `image build`");
  help->callback([&app, topic, exit = &exit_code] {
    const CLI::App* about = &app;
    std::string name = "hutch";
    for (const std::string& word : *topic) {
      const auto named = about->get_subcommands(
          [&](const CLI::App* command) { return command->get_name() == word; });
      if (named.empty()) {
        throw CLI::ValidationError("help", fmt::format("there is no command `{} {}`", name, word));
      }
      about = named.front();
      name += " " + word;
    }
    // help() would show the command that was called, which is this one.
    *exit = print_data(about->get_formatter()->make_help(about, name, CLI::AppFormatMode::Normal));
  });
}

// What the parser's complaint means for whoever typed it. Of a word that is no command, the parser
// says only that a command is missing.
int report_usage(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  std::string name = "hutch";
  for (auto inner = command->get_subcommands(); !inner.empty();
       inner = command->get_subcommands()) {
    command = inner.front();
    name += " " + command->get_name();
  }
  std::string what = error.what();
  const std::vector<std::string> words = command->remaining();
  if (error.get_name() == "RequiredError" && !words.empty()) {
    const bool flag = words.front().starts_with('-');
    what = flag ? fmt::format("`{}` has no flag {}", name, words.front())
                : fmt::format("there is no command `{} {}`", name, words.front());
  }
  print_chatter(fmt::format("hutch: {}\nhutch: `{} --help` shows what can be said\n", what, name));
  // The code of a program that was never run must not look like that program's own.
  if (name == "hutch run") return static_cast<int>(RunExitCode::failed);
  return static_cast<int>(ExitCode::usage);
}

}  // namespace

int run_command_line(int argc, const char* const* argv, Serve serve) {
  int exit_code = 0;
  CLI::App app{"Hutch runs the code that AI agents write, in sandboxes.", "hutch"};
  app.require_subcommand(1);
  app.set_version_flag("--version", version_line());
  add_run_command(app, serve, words_behind_dashes(argc, argv), exit_code);
  add_serve_command(app, serve, exit_code);
  add_pool_command(app, exit_code);
  add_image_commands(app, exit_code);
  add_plan_command(app, exit_code);
  add_doctor_command(app, exit_code);
  add_config_command(app, exit_code);
  add_docs_command(app, exit_code);
  add_completion_command(app, exit_code);
  add_version_command(app, exit_code);
  add_help_command(app, exit_code);
  add_man_command(app, exit_code);  // describes all the others
  app.footer(kFooter);  // last: commands take over the footer that is there when they are added
  // CLI11 reports everything, --help included, by throwing; nothing of that leaves this function.
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app.exit(version);
  } catch (const CLI::ParseError& error) {
    return report_usage(app, error);
  }
  return exit_code;
}

}  // namespace hutch::cli
