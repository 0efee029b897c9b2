// Which server a command speaks to, and with which key: flags, then the environment, then a profile
// of ~/.config/hutch/config.toml, then the defaults. Reads that one file; connects to nothing.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/http_client.h"

namespace hutch::cli {

// What the commands that speak to a server have as flags.
struct ClientFlags {
  std::string url;      // --url
  std::string profile;  // --profile
};

// The part of the environment that matters; empty for what is not set.
struct ClientEnvironment {
  std::string url;           // HUTCH_URL
  std::string internal_url;  // HUTCH_INTERNAL_URL
  std::string api_key;       // HUTCH_API_KEY
  std::string profile;       // HUTCH_PROFILE
  std::string config_file;   // $XDG_CONFIG_HOME/hutch/config.toml, or below ~/.config
};
ClientEnvironment client_environment();

struct ClientSettings {
  ServerAddress internal;  // where runs and the pool are served; http://127.0.0.1:8700 by default
  bool internal_is_default = true;  // nobody named one
  std::string internal_origin;      // "--url", "HUTCH_INTERNAL_URL", "profile work"; empty if none
  std::string url;                  // the listener for callers with keys; empty if none was named
  std::string api_key;              // for that listener alone; empty for none
};

// Error: config, naming the flag, the variable or the place in the file, and the remedy. A file
// that holds a key and that others can read is refused.
Result<ClientSettings> load_client_settings(const ClientFlags& flags,
                                            const ClientEnvironment& environment);

}  // namespace hutch::cli
