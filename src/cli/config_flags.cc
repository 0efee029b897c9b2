#include "cli/config_flags.h"

#include <filesystem>

namespace hutch::cli {

std::shared_ptr<ConfigFlags> add_config_flags(CLI::App& command) {
  auto flags = std::make_shared<ConfigFlags>();
  command
      .add_option("--state-dir", flags->state_dir,
                  "Images, lock and pid files [/var/lib/hutch as root]")
      ->option_text("DIR");
  command
      .add_option("--config", flags->config_file, "A TOML file; `hutch docs config` has its keys")
      ->option_text("FILE");
  command
      .add_option("--set", flags->settings, "One setting; may be given again; wins over the file")
      ->option_text("KEY=VALUE")
      ->allow_extra_args(false);
  return flags;
}

Result<config::Config> load_config(const ConfigFlags& flags) {
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
  return config::load(sources);
}

}  // namespace hutch::cli
