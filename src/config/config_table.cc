#include "config/config_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace hutch::config {
namespace {

template <auto Member>
auto& top(Config& config) {
  return config.*Member;
}

template <auto Group, auto Member>
auto& in(Config& config) {
  return config.*Group.*Member;
}

constexpr double kKiB = 1024;
constexpr double kMiB = 1024 * kKiB;
constexpr double kGiB = 1024 * kMiB;
constexpr double kTiB = 1024 * kGiB;

using L = model::Limits;

const std::array kFields{
    Field{"state_dir", Kind::text, top<&Config::state_dir>, 0, 0,
          "Absolute path of the directory with images, locks and pid files. One server at a time "
          "holds it.",
          "`/var/lib/hutch` for root; else `$XDG_STATE_HOME/hutch`, or `~/.local/state/hutch`"},
    Field{"engine", Kind::text, top<&Config::engine>, 0, 0,
          "What makes sandboxes: `native` (Linux namespaces, cgroups and seccomp).", ""},
    Field{"image", Kind::text, top<&Config::image>, 0, 0,
          "Name of the image that sandboxes start from. `hutch image build` makes it.", ""},
    Field{"waive", Kind::list, top<&Config::waive>, 0, 0,
          "Limits that you do without where this host cannot hold them: any of `memory`, "
          "`processes`, `cpus`. Without their names here, a server on such a host refuses to "
          "start. What the host can hold is held all the same; answers name in `end.waived` what "
          "was not. Danger: without `memory`, a run can take all of the host's.",
          ""},
    Field{"internal.listen", Kind::text, in<&Config::internal, &Listener::listen>, 0, 0,
          "Where runs, health and metrics are served, as `ADDRESS:PORT`. No key is asked for here, "
          "so "
          "the address must be loopback (`127.0.0.1`, `[::1]`, `localhost`). Port 0 lets the "
          "kernel choose; the ready line says which.",
          ""},
    Field{"internal.hosts", Kind::list, in<&Config::internal, &Listener::hosts>, 0, 0,
          "Further host names that the `Host` and `Origin` of a request may carry. The bound "
          "address, `localhost`, `127.0.0.1` and `[::1]` are always allowed. Danger: a web page "
          "under such a name can run code here.",
          "", Change::live},
    Field{"public.listen", Kind::text, in<&Config::public_door, &Listener::listen>, 0, 0,
          "The listener for callers with a key. This version has no keys: it answers 404 to "
          "everything, and the address must be loopback.",
          ""},
    Field{"public.hosts", Kind::list, in<&Config::public_door, &Listener::hosts>, 0, 0,
          "As `internal.hosts`, for the public listener.", "", Change::live},
    Field{"limits.memory_bytes", Kind::size, in<&Config::limits, &L::memory_bytes>, 64 * kMiB, kTiB,
          "Memory of one sandbox, files in its working directory and `/dev/shm` included. Swap is "
          "never used. A run starts only while this fits beside a tenth of the host's memory.",
          ""},
    Field{
        "limits.cpus", Kind::number, in<&Config::limits, &L::cpus>, 0.05, 256,
        "Processor time of one sandbox, in CPUs. What the program sees is this number rounded up.",
        ""},
    Field{"limits.processes", Kind::count, in<&Config::limits, &L::processes>, 8, 32768,
          "Processes and threads of one sandbox together.", ""},
    Field{"limits.open_files", Kind::count, in<&Config::limits, &L::open_files>, 64, 1'048'576,
          "Open files of one process.", ""},
    Field{"limits.disk_bytes", Kind::size, in<&Config::limits, &L::disk_bytes>, kMiB, kTiB,
          "Working directory, HOME and `/tmp` of one sandbox together. They live in its memory, so "
          "this is at most `limits.memory_bytes`.",
          ""},
    Field{"limits.inodes", Kind::count, in<&Config::limits, &L::inodes>, 256, 100'000'000,
          "Files and directories in the same three places.", ""},
    Field{"limits.shm_bytes", Kind::size, in<&Config::limits, &L::shm_bytes>, 64 * kKiB, kTiB,
          "Size of `/dev/shm`; at most `limits.memory_bytes`, which it counts towards.", ""},
    Field{"limits.stream_bytes", Kind::size, in<&Config::limits, &L::stream_bytes>, kKiB, 64 * kMiB,
          "What is kept of standard output, and of standard error. Of more, the first and the last "
          "half are kept; the program is not stopped. A change is for sandboxes made after it.",
          "", Change::live},
    Field{"limits.file_bytes", Kind::size, in<&Config::limits, &L::file_bytes>, 1, 256 * kMiB,
          "The largest file that comes back from a run.", "", Change::live},
    Field{"limits.files_bytes", Kind::size, in<&Config::limits, &L::files_bytes>, 1, 256 * kMiB,
          "All files that come back from a run together; at least `limits.file_bytes`.", "",
          Change::live},
    Field{"limits.files_count", Kind::count, in<&Config::limits, &L::files_count>, 1, 10'000,
          "How many files come back from a run, and how many omitted ones are named.", "",
          Change::live},
    Field{"pool.target", Kind::count, in<&Config::pool, &Pool::target>, 1, 64,
          "Warm sandboxes to keep ready. Each holds an interpreter with its libraries loaded.", "",
          Change::live},
    Field{"pool.ceiling", Kind::count, in<&Config::pool, &Pool::ceiling>, 1, 64,
          "The most warm sandboxes under load. Must equal `pool.target`: the pool does not grow. "
          "Where only one of the two is set, the other follows it.",
          "", Change::live},
    Field{"pool.wait_ms", Kind::duration, in<&Config::pool, &Pool::wait_ms>, 1, 300'000,
          "How long a run waits for a warm sandbox and for memory before it gets 503.", "",
          Change::live},
    Field{"pool.parallel_creates", Kind::count, in<&Config::pool, &Pool::parallel_creates>, 1, 16,
          "Sandboxes that are being made at the same time.", "", Change::live},
    Field{"pool.line_max", Kind::count, in<&Config::pool, &Pool::line_max>, 1, 100'000,
          "Runs that may wait; one more gets 503 at once.", "", Change::live},
    Field{"runs.max", Kind::count, in<&Config::runs, &Runs::max>, 1, 256,
          "Runs at the same time, as far as memory lets them.", "", Change::live},
    Field{"execute.body_bytes_max", Kind::size, in<&Config::execute, &Execute::body_bytes_max>,
          kKiB, 256 * kMiB, "The largest request body of a run; a larger one gets 413.", ""},
    Field{"server.user", Kind::text, in<&Config::server, &Server::user>, 0, 0,
          "The unprivileged user, by name or number, that the server becomes once everything is "
          "open. Never root.",
          "the user `hutch` where there is one, else the number 1900000000"},
    Field{"log.level", Kind::text, in<&Config::log, &Logging::level>, 0, 0,
          "The least level that the log has: `debug`, `info`, `warn` or `error`. With `warn`, "
          "requests are not logged. The warden keeps the level of its start.",
          "", Change::live},
#ifdef HUTCH_TESTING
    Field{"testing.fail_step", Kind::text, in<&Config::testing, &Testing::fail_step>, 0, 0, "", ""},
#endif
};

// The fewest insertions, removals and changes of one character that make `a` into `b`.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t change = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({change, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string_view wanted(Kind kind) {
  switch (kind) {
    case Kind::size:
      return R"(a size in bytes, such as 1048576 or "1MiB" (units B KiB MiB GiB TiB))";
    case Kind::count: return "an integer";
    case Kind::duration: return "an integer, in milliseconds";
    case Kind::number: return "a number";
    case Kind::text: return "a string";
    case Kind::list: return "an array of strings";
  }
  return "";
}

std::string show_number(Kind kind, double number) {
  if (kind == Kind::size) return format_size(static_cast<std::uint64_t>(number));
  return fmt::format("{}", number);
}

tl::unexpected<Error> wrong_kind(const Field& field, const Value& value) {
  std::string what(value_kind(value));
  if (const auto* text = std::get_if<std::string>(&value)) what = fmt::format("\"{}\"", *text);
  return fail(ErrorCode::config,
              fmt::format("{} must be {}, and is {}", field.key, wanted(field.kind), what));
}

// The value as a number, as far as the field's kind takes numbers.
Result<double> as_number(const Field& field, const Value& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return static_cast<double>(*number);
  if (field.kind == Kind::number) {
    if (const auto* number = std::get_if<double>(&value);
        number != nullptr && std::isfinite(*number)) {
      return *number;
    }
  }
  if (field.kind == Kind::size) {
    const auto* text = std::get_if<std::string>(&value);
    const auto size = text == nullptr ? std::nullopt : parse_size(*text);
    if (size) return static_cast<double>(*size);
  }
  return wrong_kind(field, value);
}

template <class T>
Status assign_number(const Field& field, const Value& value, T& target) {
  const double number = TRY(as_number(field, value));
  if (number < field.min || number > field.max) {
    return fail(
        ErrorCode::config,
        fmt::format("{} must be between {} and {}, and is {}", field.key,
                    show_number(field.kind, field.min), show_number(field.kind, field.max),
                    number < 0 ? fmt::format("{}", number) : show_number(field.kind, number)));
  }
  target = static_cast<T>(number);
  return {};
}

}  // namespace

std::span<const Field> fields() { return kFields; }

const Field* find_field(std::string_view key) {
  const auto* at = std::find_if(kFields.begin(), kFields.end(),
                                [&](const Field& field) { return field.key == key; });
  return at == kFields.end() ? nullptr : at;
}

bool is_group(std::string_view prefix) {
  return std::any_of(kFields.begin(), kFields.end(), [&](const Field& field) {
    return field.key.size() > prefix.size() && field.key.starts_with(prefix) &&
           field.key[prefix.size()] == '.';
  });
}

std::string suggestion(std::string_view unknown_key) {
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, unknown_key.size() / 3) + 1;
  const auto consider = [&](std::string_view candidate, std::string_view shown) {
    const std::size_t now = distance(unknown_key.substr(0, 128), candidate);
    if (now < best_distance) {
      best = shown;
      best_distance = now;
    }
  };
  for (const Field& field : kFields) {
    consider(field.key, field.key);
    const std::size_t dot = field.key.find('.');
    if (dot == std::string_view::npos) continue;
    // The group alone, for a misspelt [group]; the rest alone, for a key in no group.
    consider(field.key.substr(0, dot), field.key.substr(0, dot));
    consider(field.key.substr(dot + 1), field.key);
  }
  if (best.empty()) return "; `hutch docs config` lists the keys";
  return fmt::format("; did you mean \"{}\"?", best);
}

Status assign(const Field& field, const Value& value, Config& config) {
  if (const auto* slot = std::get_if<std::uint64_t& (*)(Config&)>(&field.slot)) {
    return assign_number(field, value, (*slot)(config));
  }
  if (const auto* slot = std::get_if<std::uint32_t& (*)(Config&)>(&field.slot)) {
    return assign_number(field, value, (*slot)(config));
  }
  if (const auto* slot = std::get_if<double& (*)(Config&)>(&field.slot)) {
    return assign_number(field, value, (*slot)(config));
  }
  if (const auto* slot = std::get_if<std::string& (*)(Config&)>(&field.slot)) {
    const auto* text = std::get_if<std::string>(&value);
    if (text == nullptr) return wrong_kind(field, value);
    (*slot)(config) = *text;
    return {};
  }
  const auto* list = std::get_if<std::vector<std::string>>(&value);
  if (list == nullptr) return wrong_kind(field, value);
  std::get<std::vector<std::string>& (*)(Config&)>(field.slot)(config) = *list;
  return {};
}

Value value_in(const Field& field, const Config& config) {
  // The slots hand out references to what they are given; this copy is what they may refer into.
  Config copy = config;
  return std::visit(
      [&](const auto slot) -> Value {
        const auto& value = slot(copy);
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_integral_v<T>) {
          return static_cast<std::int64_t>(value);
        } else {
          return value;
        }
      },
      field.slot);
}

std::string show(const Field& field, const Config& config) {
  // The slots hand out references to what they are given; this copy is what they may refer into.
  Config copy = config;
  if (const auto* slot = std::get_if<std::uint64_t& (*)(Config&)>(&field.slot)) {
    const std::uint64_t number = (*slot)(copy);
    return field.kind == Kind::size ? format_size(number) : fmt::format("{}", number);
  }
  if (const auto* slot = std::get_if<std::uint32_t& (*)(Config&)>(&field.slot)) {
    return fmt::format("{}", (*slot)(copy));
  }
  if (const auto* slot = std::get_if<double& (*)(Config&)>(&field.slot)) {
    return fmt::format("{}", (*slot)(copy));
  }
  if (const auto* slot = std::get_if<std::string& (*)(Config&)>(&field.slot)) {
    return fmt::format("\"{}\"", (*slot)(copy));
  }
  const auto& list = std::get<std::vector<std::string>& (*)(Config&)>(field.slot)(copy);
  return fmt::format("[{}]", fmt::join(list, ", "));
}

}  // namespace hutch::config
