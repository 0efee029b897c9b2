#include "cli/config_flags.h"

#include <filesystem>

namespace hutch::cli {

std::string absolute_path(const std::string& path) {
  std::error_code unknown;
  const auto absolute = std::filesystem::absolute(path, unknown);
  std::string text = unknown ? path : absolute.lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

std::string not_empty(const std::string& value) {
  return value.empty() ? "the value is empty: leave the option out, or say what is meant" : "";
}

std::shared_ptr<ConfigFlags> add_config_flags(CLI::App& command) {
  auto flags = std::make_shared<ConfigFlags>();
  command
      .add_option("--state-dir", flags->state_dir,
                  "Images, lock and pid files [/var/lib/hutch as root]")
      ->check(not_empty)
      ->option_text("DIR");
  command
      .add_option("--config", flags->config_file,
                  "A TOML file instead of the default one; see `hutch docs config`")
      ->option_text("FILE");
  command
      .add_option("--set", flags->settings, "One setting; may be given again; wins over the file")
      ->option_text("KEY=VALUE")
      ->allow_extra_args(false);
  return flags;
}

void add_listener_flags(CLI::App& command, ConfigFlags& flags) {
  command
      .add_option("--internal", flags.internal,
                  "Where runs are served; loopback only, port 0 for any [127.0.0.1:8700]")
      ->option_text("ADDR:PORT");
  command
      .add_option("--public", flags.outside,
                  "The listener for callers with keys; answers 404 [127.0.0.1:8080]")
      ->option_text("ADDR:PORT");
}

config::Sources config_sources(const ConfigFlags& flags) {
  config::Sources sources{.file = flags.config_file,
                          .settings = flags.settings,
                          .default_files = config::default_files()};
  const auto add = [&](const char* name, const char* key, const std::string& value) {
    if (!value.empty()) sources.flags.push_back({name, std::string(key) + "=" + value});
  };
  add("--internal", "internal.listen", flags.internal);
  add("--public", "public.listen", flags.outside);
  add("--state-dir", "state_dir", flags.state_dir.empty() ? "" : absolute_path(flags.state_dir));
  // A reload reads the file again, wherever the process is by then.
  if (!sources.file.empty()) sources.file = absolute_path(sources.file);
  return sources;
}

Result<config::Config> load_config(const ConfigFlags& flags) {
  return config::load(config_sources(flags));
}

}  // namespace hutch::cli
