// Writes docs/config.md from the table, so that the two cannot disagree.
#include <fmt/format.h>

#include "config/config.h"
#include "config/config_table.h"

namespace hutch::config {
namespace {

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::size: return "size";
    case Kind::count: return "integer";
    case Kind::duration: return "integer, ms";
    case Kind::number: return "number";
    case Kind::text: return "string";
    case Kind::list: return "array of strings";
  }
  return "";
}

std::string range(const Field& field) {
  if (field.kind == Kind::text || field.kind == Kind::list) return "";
  if (field.kind == Kind::size) {
    return fmt::format("{} to {}", format_size(static_cast<std::uint64_t>(field.min)),
                       format_size(static_cast<std::uint64_t>(field.max)));
  }
  return fmt::format("{} to {}", field.min, field.max);
}

constexpr std::string_view kIntroduction = R"(# Settings

`hutch docs config` prints this page; it is generated from the table in
`src/config/config_table.cc`.

The server reads settings in this order, and later ones win: the defaults below, one TOML file,
each `--set key=value` in turn, and the flags `--internal`, `--public` and `--state-dir`. The file
is the one named by `--config FILE`; where none is named, the first of these that exists:
`/etc/hutch/config.toml` (read by root only), then `$XDG_CONFIG_HOME/hutch/server.toml`, which is
`~/.config/hutch/server.toml` unless the variable says otherwise. A file that nobody named must
belong to root or to the user who starts Hutch, and nobody else may be able to write to it.
`--config /dev/null` reads none.

A key that is not in this list, a value of another type and a value out of range stop the start
with exit code 64 and a line that says where it stands (file, line and column) and what is allowed.
`hutch config` prints what all of that comes to, and where each value comes from; it takes the same
flags as `hutch serve`. `hutch config KEY` prints one value.

At SIGHUP a running server reads the same file again. What is marked "at SIGHUP" below then changes
at once, for runs that come from then on; of the rest, what differs is named in the log with `needs
a restart`. A file that cannot be read or makes no sense changes nothing, and the log says why. The
server reads it as the unprivileged user that it has become, so that user must be able to: keep the
file readable for all (it holds no secrets), in a directory that all can enter.

Commands that speak to a server (`hutch run`, `hutch pool`) look for its address in this order:
`--url`, the variable `HUTCH_INTERNAL_URL`, the profile (`--profile`, else `HUTCH_PROFILE`, else the
one that the file names) in `~/.config/hutch/config.toml`, and then `http://127.0.0.1:8700`. That
file has nothing to do with the server's own:

```toml
profile = "work"

[profiles.work]
internal_url = "http://127.0.0.1:8700"
```

A profile may also hold `url` and `api_key`, as may the variables `HUTCH_URL` and `HUTCH_API_KEY`,
for the listener for callers with keys; no command of this version speaks to that one. A file with
a key must be readable by its owner alone.

A size is an integer of bytes, or a string with a unit: `"512MiB"` (B, KiB, MiB, GiB, TiB). With
`--set`, strings are written without quotes, and the items of an array are separated by commas.

```toml
[limits]
memory_bytes = "1GiB"
cpus = 2

[pool]
target = 5
```
)";

}  // namespace

std::string reference_markdown() {
  const Config defaults;
  std::string text(kIntroduction);
  std::string_view group = "?";
  for (const Field& field : fields()) {
    if (field.doc.empty()) continue;
    const std::size_t dot = field.key.find('.');
    const std::string_view now = dot == std::string_view::npos ? "" : field.key.substr(0, dot);
    if (now != group) {
      text += now.empty() ? "\n## At the top of the file\n" : fmt::format("\n## [{}]\n", now);
      text +=
          "\n| key | type | default | range | changes | meaning |\n| --- | --- | --- | --- | --- | "
          "--- |\n";
      group = now;
    }
    const std::string value = field.default_words.empty()
                                  ? fmt::format("`{}`", show(field, defaults))
                                  : std::string(field.default_words);
    text += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", field.key, kind_name(field.kind),
                        value, range(field),
                        field.change == Change::live ? "at SIGHUP" : "at a start", field.doc);
  }
  return text;
}

}  // namespace hutch::config
