#include "cli/run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/sys.h"
#include "base/units.h"
#include "base/utf8.h"
#include "cli/config_flags.h"
#include "cli/output.h"
#include "cli/printable.h"
#include "cli/process_setup.h"
#include "cli/run_exit_code.h"
#include "cli/run_inputs.h"
#include "cli/run_session.h"

namespace hutch::cli {
namespace {

constexpr std::size_t kCodeBytesMax = 32_MiB;

struct RunFlags {
  std::shared_ptr<ConfigFlags> config;
  ClientFlags client;
  std::optional<std::string> code;  // -c
  std::vector<std::string> words;   // FILE, unless there is -c, and the program's arguments
  std::vector<std::string> in;
  std::string out;
  std::optional<std::uint32_t> timeout_s;
  std::string image;
  bool json = false;
  bool local = false;
  bool quiet = false;
};

// Why a run did not begin, and the exit code that goes with it.
struct Refusal {
  RunExitCode exit_code;
  std::string words;
};

template <class T>
using OrRefusal = tl::expected<T, Refusal>;

tl::unexpected<Refusal> refuse(std::string words, RunExitCode code = RunExitCode::failed) {
  return tl::unexpected<Refusal>(Refusal{code, std::move(words)});
}

// Standard input to its end, at most kCodeBytesMax.
Result<std::string> read_stdin(const StopSignals& signals) {
  std::string text;
  std::array<std::byte, 65536> part{};
  for (;;) {
    std::array<pollfd, 2> on{pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{signals.fd(), POLLIN, 0}};
    if (::poll(on.data(), on.size(), -1) < 1) continue;  // a signal that nobody waits for
    if (on[1].revents != 0) return fail(ErrorCode::cancelled, "interrupted");
    const sys::ReadResult got = TRY(sys::read_some(STDIN_FILENO, part));
    if (got.would_block) continue;
    if (got.size == 0) return text;
    text.append(reinterpret_cast<const char*>(part.data()), got.size);
    if (text.size() > kCodeBytesMax) return fail(ErrorCode::too_large, "too large");
  }
}

tl::unexpected<Refusal> too_large(const std::string& name) {
  return refuse(fmt::format("{} is larger than {} MiB, the most that one request carries",
                            printable(name), kCodeBytesMax / 1_MiB));
}

OrRefusal<std::string> read_file(const std::string& path) {
  Result<std::string> text = sys::read_file(path, kCodeBytesMax);
  if (text) return std::move(*text);
  const Error& error = text.error();
  if (error.code == ErrorCode::too_large) return too_large(path);
  const RunExitCode code =
      error.code == ErrorCode::not_found ? RunExitCode::missing : RunExitCode::unreadable;
  return refuse(printable(describe(error)), code);
}

OrRefusal<std::string> read_code(const RunFlags& flags, const StopSignals& signals) {
  if (flags.code) return *flags.code;
  if (flags.words.empty()) return refuse("say what to run: FILE, -c CODE, or - for standard input");
  const std::string& file = flags.words.front();
  if (file != "-") return read_file(file);
  Result<std::string> text = read_stdin(signals);
  if (text) return std::move(*text);
  if (text.error().code == ErrorCode::too_large) return too_large("standard input");
  if (text.error().code == ErrorCode::cancelled) {
    return refuse("", static_cast<RunExitCode>(kSignalBase + signals.take()));
  }
  return refuse(describe(text.error()), RunExitCode::unreadable);
}

OrRefusal<RunRequest> request_of(const RunFlags& flags, const StopSignals& signals) {
  RunRequest request{.timeout_s = flags.timeout_s, .image = flags.image};
  OrRefusal<std::string> code = read_code(flags, signals);
  if (!code) return tl::unexpected<Refusal>(code.error());
  request.code = std::move(*code);
  if (!utf8::is_valid(request.code)) {
    return refuse("the code is not UTF-8: convert it, iconv -t UTF-8 does",
                  RunExitCode::unreadable);
  }
  request.args.assign(flags.words.begin() + (flags.code || flags.words.empty() ? 0 : 1),
                      flags.words.end());
  for (const std::string& argument : request.args) {
    if (!utf8::is_valid(argument)) {
      return refuse(fmt::format("the argument {} is not UTF-8", printable(argument)));
    }
  }
  Result<RunInputs> inputs = read_inputs(flags.in, {});
  if (!inputs) return refuse(describe(inputs.error()));
  request.files = std::move(inputs->files);
  if (!inputs->skipped.empty() && !flags.quiet) {
    print_chatter(fmt::format("hutch: not sent, since they are no regular files: {}{}\n",
                              printable(inputs->skipped.front()),
                              inputs->skipped.size() == 1
                                  ? std::string()
                                  : fmt::format(" and {} more", inputs->skipped.size() - 1)));
  }
  return request;
}

// Settings of a server mean one of our own.
bool wants_local(const RunFlags& flags) {
  const ConfigFlags& config = *flags.config;
  return flags.local || !config.state_dir.empty() || !config.config_file.empty() ||
         !config.settings.empty();
}

OrRefusal<RunPlan> plan_of(const RunFlags& flags, const StopSignals& signals) {
  RunPlan plan{
      .local = wants_local(flags), .out = flags.out, .json = flags.json, .quiet = flags.quiet};
  if (plan.local && !flags.client.url.empty()) {
    return refuse(
        "--url means a server that runs already, and --local, --state-dir, --config and "
        "--set one of this run alone: leave one of the two out");
  }
  Result<ClientSettings> client = load_client_settings(flags.client, client_environment());
  if (!client) return refuse(printable(describe(client.error())));
  plan.client = std::move(*client);
  Result<config::Config> config = load_config(*flags.config);
  if (!config) return refuse(describe(config.error()));
  plan.config = std::move(*config);
  if (!flags.image.empty()) plan.config.image = flags.image;
  OrRefusal<RunRequest> request = request_of(flags, signals);
  if (!request) return tl::unexpected<Refusal>(request.error());
  plan.request = std::move(*request);
  return plan;
}

int run(const RunFlags& flags, Serve serve) {
  if (const Status open = open_standard_descriptors(); !open) {
    return static_cast<int>(RunExitCode::failed);
  }
  std::signal(SIGPIPE, SIG_IGN);
  const StopSignals signals;
  const OrRefusal<RunPlan> plan = plan_of(flags, signals);
  if (!plan) {
    if (!plan.error().words.empty()) print_chatter("hutch: " + plan.error().words + "\n");
    return static_cast<int>(plan.error().exit_code);
  }
  const SystemClock clock;
  return RunSession(*plan, serve, clock, signals).run();
}

constexpr const char* kFooter = R"--(
Where it runs: the server at --url, HUTCH_INTERNAL_URL or the profile's internal_url; without any of
them the one at http://127.0.0.1:8700, and if none answers there, one of this run alone that ends
with it. --local, --state-dir, --config and --set ask for the last. What such a host cannot limit is
named at the end.

The program's standard input is empty. Files that it writes are kept with --out only. Options before
-- are those of hutch, wherever they stand.

  hutch run -c 'print(2**32)'
  hutch run report.py --in data.csv --out results -- --year 2026
  generate | hutch run - --timeout 5

Exit codes:
     the program's own; 128 and the signal's number when one ended it, 137 at its memory limit
124  the program was ended at its deadline
125  Hutch failed: wrong usage, no server, a run that was lost
126  FILE cannot be read
127  there is no FILE
130  interrupted (143 by SIGTERM, 129 by a hang-up); the run has been ended
)--";

}  // namespace

std::vector<std::string> words_behind_dashes(int& argc, const char* const* argv) {
  std::vector<std::string> behind;
  if (argc < 2 || std::string_view(argv[1]) != "run") return behind;
  const auto* const end = argv + argc;
  const auto* const dashes =
      std::find_if(argv + 2, end, [](const char* word) { return std::string_view(word) == "--"; });
  if (dashes == end) return behind;
  behind.assign(dashes + 1, end);
  argc = static_cast<int>(dashes - argv);
  return behind;
}

void add_run_command(CLI::App& app, Serve serve, std::vector<std::string> behind, int& exit_code) {
  CLI::App* command = app.add_subcommand("run", "Run a Python program in a sandbox");
  auto flags = std::make_shared<RunFlags>();
  command->add_option("-c", flags->code, "The program itself, instead of FILE")
      ->option_text("CODE");
  command
      ->add_option("words", flags->words,
                   "The program, - for standard input; then its own arguments, behind -- where "
                   "they look like options")
      ->option_text("FILE [--] [ARG ...]");
  command
      ->add_option("--in", flags->in,
                   "A file, or all files of a directory, for the program to find under NAME; may "
                   "be given again")
      ->option_text("PATH[:NAME]")
      ->allow_extra_args(false);
  command->add_option("--out", flags->out, "Where the files go that the program makes or changes")
      ->check(not_empty)
      ->option_text("DIR");
  command->add_option("--timeout", flags->timeout_s, "The deadline, 1 to 60 [20]")
      ->option_text("SECONDS");
  command->add_option("--image", flags->image, "What the sandbox starts from [python]")
      ->check(not_empty)
      ->option_text("NAME");
  command->add_flag("--json", flags->json, "For scripts: the whole answer as one JSON object");
  command->add_option("--url", flags->client.url, "The internal address of a server")
      ->option_text("URL");
  command
      ->add_option("--profile", flags->client.profile,
                   "One of ~/.config/hutch/config.toml; HUTCH_PROFILE says the same")
      ->option_text("NAME");
  command->add_flag("--local", flags->local, "Without asking for a server");
  command->add_flag("-q,--quiet", flags->quiet, "No progress, no summary");
  flags->config = add_config_flags(*command);
  command->footer(kFooter);
  command->callback([flags, serve, behind = std::move(behind), &exit_code] {
    flags->words.insert(flags->words.end(), behind.begin(), behind.end());
    exit_code = run(*flags, serve);
  });
}

}  // namespace hutch::cli
