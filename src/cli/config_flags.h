// The flags that choose settings, for every command that needs a whole configuration.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/config.h"

namespace hutch::cli {

struct ConfigFlags {
  std::string config_file;
  std::string internal;
  std::string outside;
  std::string state_dir;  // may be relative to the working directory
  std::vector<std::string> settings;
};

// For an option whose value a script may have left empty by mistake: what it then says.
std::string not_empty(const std::string& value);

// Adds --state-dir, --config and --set.
std::shared_ptr<ConfigFlags> add_config_flags(CLI::App& command);

// Adds --internal and --public. The flags must live as long as the command.
void add_listener_flags(CLI::App& command, ConfigFlags& flags);

// Without "." and "..", and without a slash at the end.
std::string absolute_path(const std::string& path);

// What the flags name, and where no file is named the default ones.
config::Sources config_sources(const ConfigFlags& flags);

// Flags win over --set, and that wins over the file.
Result<config::Config> load_config(const ConfigFlags& flags);

}  // namespace hutch::cli
