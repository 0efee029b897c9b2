#include "cli/pool.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/json.h"
#include "base/units.h"
#include "cli/client_settings.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/stop_signals.h"

namespace hutch::cli {
namespace {

constexpr int kPauseMs = 1000;
constexpr std::chrono::milliseconds kSilence{10'000};

struct Numbers {
  std::int64_t warm = 0;
  std::int64_t target = 0;
  std::int64_t in_flight = 0;
  std::int64_t created_total = 0;

  bool operator==(const Numbers&) const = default;
};

struct Flags {
  ClientFlags client;
  bool watch = false;
  bool as_json = false;
};

Result<Numbers> parse(const ServerAddress& server, const HttpAnswer& answer) {
  const auto nonsense = [&] {
    return fail(ErrorCode::io,
                fmt::format("what answers at {} is no Hutch that shows its pool (status {}): name "
                            "the internal address of a server with --url",
                            server.url, answer.status));
  };
  const auto parsed = json::parse(answer.body);
  if (answer.status != 200 || !parsed || !parsed->is_object()) return nonsense();
  Numbers numbers;
  const auto take = [&](const char* key, std::int64_t& into) {
    const auto* value = parsed->get_object().if_contains(key);
    if (value == nullptr || !value->is_int64()) return false;
    into = value->get_int64();
    return true;
  };
  if (!take("warm", numbers.warm) || !take("target", numbers.target) ||
      !take("in_flight", numbers.in_flight) || !take("created_total", numbers.created_total)) {
    return nonsense();
  }
  return numbers;
}

Result<Numbers> ask(const ServerAddress& server, const Clock& clock, int stop_fd) {
  auto client = HttpClient::connect(server, clock, {.stop_fd = stop_fd, .silence = kSilence});
  if (!client && client.error().code != ErrorCode::cancelled) {
    return fail(Error{ErrorCode::unsupported_host, Step::none, 0,
                      fmt::format("no server answers: {}; start one with `hutch serve`, or name "
                                  "its internal address with --url or HUTCH_INTERNAL_URL",
                                  describe(client.error()))});
  }
  HttpClient link = TRY(std::move(client));
  return parse(server, TRY(link.exchange({.target = "/v1/pool"}, 64_KiB)));
}

std::string as_json(const Numbers& numbers) {
  json::Writer out;
  out.begin_object();
  out.key("warm").integer(numbers.warm);
  out.key("target").integer(numbers.target);
  out.key("in_flight").integer(numbers.in_flight);
  out.key("created_total").integer(numbers.created_total);
  out.end_object();
  return out.take();
}

std::string as_line(const Numbers& numbers) {
  return fmt::format("warm {} of {}  in flight {}  created {}", numbers.warm, numbers.target,
                     numbers.in_flight, numbers.created_total);
}

std::string as_table(const Numbers& numbers) {
  return fmt::format("warm           {}\ntarget         {}\nin_flight      {}\ncreated_total  {}\n",
                     numbers.warm, numbers.target, numbers.in_flight, numbers.created_total);
}

int once(const ServerAddress& server, const Clock& clock, bool wants_json) {
  const auto numbers = ask(server, clock, -1);
  if (!numbers) return report(numbers.error());
  return print_data(wants_json ? as_json(*numbers) + "\n" : as_table(*numbers));
}

int watch(const ServerAddress& server, const Clock& clock, bool wants_json) {
  const StopSignals signals;
  const bool in_place = !wants_json && ::isatty(STDOUT_FILENO) == 1;
  std::string shown;
  for (;;) {
    const auto numbers = ask(server, clock, signals.fd());
    if (!numbers) {
      if (in_place && !shown.empty()) print_data("\n");
      if (numbers.error().code != ErrorCode::cancelled) return report(numbers.error());
      return 128 + signals.take();
    }
    const std::string now = wants_json ? as_json(*numbers) : as_line(*numbers);
    if (now != shown) {
      const int printed = print_data(in_place ? "\r\033[K" + now : now + "\n");
      if (printed != 0) return printed;
      shown = now;
    }
    pollfd stop{signals.fd(), POLLIN, 0};
    if (::poll(&stop, 1, kPauseMs) > 0) {
      if (in_place) print_data("\n");
      return 128 + signals.take();
    }
  }
}

int run(const Flags& flags) {
  const auto settings = load_client_settings(flags.client, client_environment());
  if (!settings) return report(settings.error());
  const SystemClock clock;
  return flags.watch ? watch(settings->internal, clock, flags.as_json)
                     : once(settings->internal, clock, flags.as_json);
}

}  // namespace

void add_pool_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("pool", "Show the warm sandboxes of a running server");
  auto flags = std::make_shared<Flags>();
  command->add_flag("--watch", flags->watch, "Go on showing it, until Ctrl-C");
  command->add_flag("--json", flags->as_json, "For scripts: one JSON object, or one a line");
  command->add_option("--url", flags->client.url, "The internal address of a server")
      ->option_text("URL [http://127.0.0.1:8700]");
  command->add_option("--profile", flags->client.profile, "One of ~/.config/hutch/config.toml")
      ->option_text("NAME");
  command->footer(
      "\nOn a terminal --watch refreshes one line; elsewhere it prints a line at each change, as "
      "it\n"
      "does with --json. Ctrl-C ends it with 130. Ends with 69 when no server answers. Where no "
      "flag\n"
      "says so, the server is HUTCH_INTERNAL_URL, or that of the profile.\n");
  command->callback([flags, &exit_code] { exit_code = run(*flags); });
}

}  // namespace hutch::cli
