// Everything an operator can set, in one struct of plain values. config_table.cc says for each
// field its key, limits and words; load.cc fills the struct from a file and from --set. A value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/state_dir.h"
#include "model/limits.h"

namespace hutch::config {

struct Listener {
  // "ADDRESS:PORT"; the address is loopback (127.0.0.0/8, [::1] or localhost), port 0 lets the
  // kernel choose.
  std::string listen;
  // Names besides the bound address, localhost, 127.0.0.1 and [::1] that a request's Host and
  // Origin may carry. Whoever can answer for such a name in a browser can send requests here.
  std::vector<std::string> hosts;
};

struct Pool {
  std::uint32_t target = 3;            // warm sandboxes to keep ready; 1 .. 64
  std::uint32_t ceiling = 3;           // the most the pool may grow to; equals target
  std::uint32_t wait_ms = 30'000;      // how long a run waits for its turn before 503; 1 .. 300,000
  std::uint32_t parallel_creates = 2;  // sandboxes being made at once; 1 .. 16
  std::uint32_t line_max = 1024;       // runs that may wait in line; 1 .. 100,000
};

struct Runs {
  std::uint32_t max = 32;  // runs at once, memory permitting; 1 .. 256
};

struct Execute {
  std::uint64_t body_bytes_max = 32_MiB;  // one request's body; 1 KiB .. 256 MiB
};

struct Server {
  // The user that the server becomes once everything is open; a name or a number, never root.
  // Empty: the user `hutch` where there is one, else the number that privileges.h reserves.
  std::string user;
};

struct Logging {
  // The least level that is logged: "debug", "info", "warn" or "error".
  std::string level = "info";
};

struct Testing {
  // Name of a step (base/step.h) that fails whenever it comes. Only builds for tests have the key.
  std::string fail_step;
};

// Where the settings come from; later ones win: defaults, file, settings and flags in their order.
// Made by the process that starts: another user has other defaults, and a server is another user
// after its start.
struct Sources {
  std::string file;                   // path of a TOML file, at most 1 MiB; empty for none
  std::vector<std::string> settings;  // "key=value", as --set takes them
  struct Flag {
    std::string name;     // "--internal"
    std::string setting;  // "internal.listen=127.0.0.1:8700"
  };
  std::vector<Flag> flags;
  // Where no file is named, the first of these that exists. It must belong to root or to this user,
  // and nobody else may write to it: who can, would decide as whom and how a server runs.
  std::vector<std::string> default_files;
  DefaultPlace state_dir = default_state_place();
};

struct Config {
  Listener internal{.listen = "127.0.0.1:8700", .hosts = {}};
  Listener public_door{.listen = "127.0.0.1:8080", .hosts = {}};  // key: public
  std::string state_dir = default_state_dir();  // absolute path; images, locks, pid files
  model::Limits limits;                         // of one sandbox
  Pool pool;
  Runs runs;
  Execute execute;
  std::string engine = "native";  // "native"; builds for tests also know "fake"
  std::string image = "python";   // what sandboxes start from; `hutch image ls` shows them
  // Limits ("memory", "processes", "cpus") that may go unheld where this host cannot hold them.
  std::vector<std::string> waive;
  Server server;
  Logging log;
  Testing testing;
  Sources sources;  // what load() was given; a reload reads the same again
};

// Reads and checks all of it. Errors have code `config` and name the place (file:line:column or the
// setting), the key, the limit and the remedy.
Result<Config> load(const Sources& sources);

// Where one value came from.
struct Origin {
  enum class Kind { standard, environment, file, setting, flag, follows };
  Kind kind = Kind::standard;
  // The variable, "FILE:LINE", nothing for a setting, the flag's name, the key that it follows.
  std::string place;
};
// "default", "environment HOME", "/etc/hutch/config.toml:3", "--set", "--internal", "follows KEY".
std::string origin_text(const Origin& origin);

struct Loaded {
  Config config;
  std::string file;             // that was read; empty for none
  std::vector<Origin> origins;  // in the order of fields()
};
Result<Loaded> load_with_origins(const Sources& sources);

// A setting whose value differs between two configurations.
struct Difference {
  std::string key;
  std::string was;
  std::string now;
  bool live = false;  // whether a server that runs can take it over
};
std::vector<Difference> differences(const Config& was, const Config& now);

// `running` with the values of `read` for every setting that a server that runs can take over.
Config take_over_live(const Config& running, const Config& read);

// The rules that concern more than one setting, or the meaning of one. load() has applied them.
Status check(const Config& config);

struct Address {
  std::string host;  // without the brackets of an IPv6 address; 127.0.0.1 for localhost
  std::uint16_t port = 0;
};
// "127.0.0.1:8700", "[::1]:0", "localhost:80". Error: config.
Result<Address> parse_address(const std::string& text);

// The reference of all settings, as docs/config.md holds it.
std::string reference_markdown();

}  // namespace hutch::config
