#include "cli/serve.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/exit_code.h"

namespace hutch::cli {
namespace {

struct Flags {
  std::string config_file;
  std::string internal;
  std::string outside;
  std::string state_dir;
  std::vector<std::string> settings;
};

// The flags as settings; they come last, so that they win.
config::Sources sources_of(const Flags& flags) {
  config::Sources sources{.file = flags.config_file, .settings = flags.settings};
  if (!flags.internal.empty()) sources.settings.push_back("internal.listen=" + flags.internal);
  if (!flags.outside.empty()) sources.settings.push_back("public.listen=" + flags.outside);
  if (!flags.state_dir.empty()) {
    std::error_code unknown;
    const auto absolute = std::filesystem::absolute(flags.state_dir, unknown);
    std::string path = absolute.lexically_normal().string();
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    sources.settings.push_back("state_dir=" + path);
  }
  return sources;
}

}  // namespace

void add_serve_command(CLI::App& app, Serve serve, int& exit_code) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("serve", "Serve until a signal says stop");
  command
      ->add_option("--internal", flags->internal,
                   "Where runs are served; loopback only, port 0 for any [127.0.0.1:8700]")
      ->option_text("ADDR:PORT");
  command
      ->add_option("--public", flags->outside,
                   "The listener for callers with keys; answers 404 [127.0.0.1:8080]")
      ->option_text("ADDR:PORT");
  command
      ->add_option("--state-dir", flags->state_dir,
                   "Images, lock and pid files [/var/lib/hutch as root]")
      ->option_text("DIR");
  command
      ->add_option("--config", flags->config_file, "A TOML file; `hutch docs config` has its keys")
      ->option_text("FILE");
  command
      ->add_option("--set", flags->settings, "One setting; may be given again; wins over the file")
      ->option_text("KEY=VALUE")
      ->allow_extra_args(false);
  command->footer(
      "\nOne line on standard output says when runs are taken, and where:\n"
      "  hutch ready internal=http://127.0.0.1:8700 public=http://127.0.0.1:8080\n"
      "The log goes to standard error, one JSON object a line. SIGTERM and SIGINT let runs in\n"
      "flight finish, up to 65 s; a second one stops at once.\n\n" +
      std::string(exit_code_help()));
  command->callback([flags, serve, &exit_code] {
    const Result<config::Config> config = config::load(sources_of(*flags));
    exit_code = config ? serve(*config) : report(config.error());
  });
}

}  // namespace hutch::cli
