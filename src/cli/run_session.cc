#include "cli/run_session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/base64.h"
#include "base/json.h"
#include "base/units.h"
#include "cli/output.h"
#include "cli/printable.h"
#include "cli/run_exit_code.h"

namespace hutch::cli {
namespace {

namespace bj = boost::json;

constexpr const char* kTarget = "/v1/execute";
constexpr const char* kEventStream = "text/event-stream";
// A plain answer at the largest settings: files and streams of 256 MiB each, as JSON.
constexpr std::size_t kAnswerBytesMax = 1_GiB;
constexpr std::size_t kErrorBytesMax = 1_MiB;
// A stream is never silent for longer than 15 s once it has begun. Before that, and in all of a
// plain answer, the line for a sandbox, the run and the reading of its files take their time.
constexpr std::chrono::milliseconds kSilence{180'000};
// For a server to end a run that nobody waits for, and for one of our own to take itself down.
constexpr std::chrono::milliseconds kLeavePatience{10'000};
constexpr std::chrono::milliseconds kPrivatePatience{30'000};
constexpr std::size_t kNamesShown = 20;

std::string_view text_at(const bj::object& object, std::string_view key) {
  const bj::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string_view(value->get_string())
                                                : std::string_view();
}

const bj::object* object_at(const bj::object& object, std::string_view key) {
  const bj::value* value = object.if_contains(key);
  return value == nullptr ? nullptr : value->if_object();
}

const bj::array* array_at(const bj::object& object, std::string_view key) {
  const bj::value* value = object.if_contains(key);
  return value == nullptr ? nullptr : value->if_array();
}

// The number, of whichever integer type; 0 where there is none.
std::uint64_t number_at(const bj::object& object, std::string_view key) {
  const bj::value* value = object.if_contains(key);
  if (value == nullptr) return 0;
  if (const auto* whole = value->if_uint64()) return *whole;
  const auto* number = value->if_int64();
  return number == nullptr || *number < 0 ? 0 : static_cast<std::uint64_t>(*number);
}

Result<bj::object> object_of(std::string_view text) {
  auto value = json::parse(text);
  if (value && value->is_object()) return std::move(value->get_object());
  return fail(ErrorCode::io, "the server sent something that is not the JSON object it should be");
}

std::string_view omitted_because(std::string_view reason) {
  if (reason == "too_large") return "it is larger than limits.file_bytes";
  if (reason == "total") return "all files together are larger than limits.files_bytes";
  if (reason == "count") return "there are more files than limits.files_count";
  if (reason == "not_regular") return "it is not a regular file";
  if (reason == "unreadable") return "it could not be read";
  if (reason == "name") return "its name is not UTF-8";
  return reason;
}

std::string counted(std::uint64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

}  // namespace

RunSession::RunSession(const RunPlan& plan, Serve serve, const Clock& clock,
                       const StopSignals& signals)
    : plan_(plan),
      serve_(serve),
      clock_(clock),
      signals_(signals),
      out_(STDOUT_FILENO, signals.fd()),
      err_(STDERR_FILENO, signals.fd()),
      progress_(clock, "starting a sandbox",
                plan.quiet ? Progress::Wanted::no : Progress::Wanted::yes) {}

int RunSession::run() {
  const Result<int> result = attempt();
  progress_.end();
  const bool interrupted = !result && result.error().code == ErrorCode::cancelled;
  const int signal = interrupted && result.error().sys_errno != EPIPE ? signals_.take() : 0;
  // The run is over before this process is.
  if (interrupted && client_) client_->leave(kLeavePatience);
  client_.reset();
  const std::string words = private_ ? private_->wait(kPrivatePatience, signals_) : std::string();
  if (signal != 0) return kSignalBase + signal;
  if (!result) return end_of(result.error(), words);
  if (!words.empty()) say(words);
  return *result;
}

int RunSession::end_of(const Error& error, const std::string& last_words) {
  if (error.code == ErrorCode::cancelled) {
    // A program in a pipeline whose reader has left ends like this, and without a word.
    return kSignalBase + (error.sys_errno == EPIPE ? SIGPIPE : SIGINT);
  }
  // What a server of our own failed of says more than that it answered nothing.
  say(last_words.empty() ? describe(error) : last_words);
  return static_cast<int>(RunExitCode::failed);
}

void RunSession::say(const std::string& sentence) {
  progress_.end();
  print_chatter(fmt::format("{}hutch: {}\n", err_.inside_line() ? "\n" : "", printable(sentence)));
}

Result<int> RunSession::attempt() {
  if (!plan_.out.empty()) files_ = TRY(RunFiles::open(plan_.out));
  TRY(open_server());
  return take_answer();
}

HttpClientOptions RunSession::client_options() {
  return {.stop_fd = signals_.fd(), .silence = kSilence, .tick = [this] { tick(); }};
}

void RunSession::tick() {
  if (private_ && private_->is_unpacking()) progress_.now("unpacking the image, once");
  progress_.tick();
}

Status RunSession::open_server() {
  if (plan_.local) return start_private();
  Result<HttpClient> client = HttpClient::connect(plan_.client.internal, clock_, client_options());
  if (client) {
    client_.emplace(std::move(*client));
    return {};
  }
  if (client.error().code == ErrorCode::cancelled) return fail(client.error());
  if (!plan_.client.internal_is_default) {
    return fail(ErrorCode::io,
                fmt::format("{}; {} names that server: start it, or leave that out and run "
                            "without one",
                            describe(client.error()), plan_.client.internal_origin));
  }
  if (client.error().sys_errno != ECONNREFUSED) return fail(client.error());
  return start_private();
}

Status RunSession::start_private() {
  private_.emplace(TRY(PrivateServer::start(plan_.config, serve_, signals_)));
  client_.emplace(private_->take_socket(), "the server of this run", clock_, client_options());
  return {};
}

Result<int> RunSession::take_answer() {
  const HttpRequest request{.method = "POST",
                            .target = kTarget,
                            .accept = plan_.json ? "application/json" : kEventStream,
                            .body = encode(plan_.request)};
  HttpAnswer answer = TRY(client_->begin(request));
  if (answer.status != 200) return refused(answer);
  const bool streams = answer.content_type.starts_with(kEventStream);
  EventStream events;
  const auto on_event = [this](const ServerEvent& event) { return take_event(event); };
  for (std::string piece; TRY(client_->read_body(piece)); piece.clear()) {
    if (streams) {
      TRY(events.feed(piece, on_event));
    } else if (answer.body.size() + piece.size() > kAnswerBytesMax) {
      return fail(ErrorCode::too_large, "the server's answer is too large");
    } else {
      answer.body += piece;
    }
  }
  if (!streams) TRY(take_whole(std::move(answer.body)));
  if (!end_) return fail(ErrorCode::io, "the server stopped before it told how the run ended");
  return conclude();
}

// An answer that is no 200: the server's own words, where it has some.
Result<int> RunSession::refused(const HttpAnswer& answer) {
  std::string body;
  while (body.size() < kErrorBytesMax && TRY(client_->read_body(body))) continue;
  const auto object = object_of(body);
  const std::string_view words = object ? text_at(*object, "error") : std::string_view();
  if (answer.status == 404 || words.empty()) {
    return fail(ErrorCode::io,
                fmt::format("{} answers {} to a run: is it the internal address of a Hutch server?",
                            plan_.client.internal.url, answer.status));
  }
  return fail(ErrorCode::io, std::string(words));
}

Status RunSession::take_event(const ServerEvent& event) {
  if (end_) return {};
  const bj::object data = TRY(object_of(event.data));
  progress_.end();
  if (event.name == "stdout") return take_output(out_, data);
  if (event.name == "stderr") return take_output(err_, data);
  if (event.name == "file") take_file(data);
  if (event.name == "exit") end_ = data;
  if (event.name != "error") return {};
  const std::string_view words = text_at(data, "error");
  return fail(ErrorCode::io, words.empty() ? "the run was lost" : std::string(words));
}

Status RunSession::take_output(RunOutput& output, const bj::object& event) {
  if (event.if_contains("b64") == nullptr) return output.write(text_at(event, "text"));
  const auto bytes = base64::decode(text_at(event, "b64"));
  if (!bytes) return fail(ErrorCode::io, "the server sent output that is not base64");
  return output.write(*bytes);
}

// The answer of --json, or of a server that does not stream.
Status RunSession::take_whole(std::string body) {
  bj::object answer = TRY(object_of(body));
  progress_.end();
  if (plan_.json) {
    body += '\n';
    TRY(out_.write(body));
  } else {
    TRY(out_.write(text_at(answer, "stdout")));
    TRY(err_.write(text_at(answer, "stderr")));
  }
  if (const bj::array* files = array_at(answer, "files")) {
    for (const bj::value& file : *files) {
      if (file.is_object()) take_file(file.get_object());
    }
  }
  end_ = std::move(answer);
  return {};
}

void RunSession::take_file(const bj::object& file) {
  const std::string_view path = text_at(file, "path");
  if (!files_) {
    not_kept_.emplace_back(path);
    return;
  }
  const auto bytes = base64::decode(text_at(file, "content_b64"));
  const Status written =
      bytes ? files_->write(path, *bytes)
            : fail(ErrorCode::io, fmt::format("the content of {} is not base64", path));
  if (written) return;
  // The others are worth having all the same.
  file_failed_ = true;
  say(describe(written.error()));
}

Result<int> RunSession::conclude() {
  const bj::object* end = object_at(*end_, "end");
  const bool timed_out = end != nullptr && text_at(*end, "cause") == "timeout";
  // The server's line about a deadline has no end of its own.
  if (timed_out && !plan_.json && err_.inside_line()) TRY(err_.write("\n"));
  tell_omitted();
  if (!plan_.quiet) tell_files();
  if (private_ && !plan_.quiet) tell_waived();
  if (file_failed_) return static_cast<int>(RunExitCode::failed);
  if (timed_out) return static_cast<int>(RunExitCode::timeout);
  const bj::value* code = end_->if_contains("exit_code");
  if (code == nullptr || !code->is_int64()) {
    return fail(ErrorCode::io, "the server did not tell how the program ended");
  }
  return static_cast<int>(code->get_int64());
}

// Only of who asked for files; the answer of --json has the list anyway.
void RunSession::tell_omitted() const {
  const bj::array* omitted = array_at(*end_, "files_omitted");
  if (!files_ || omitted == nullptr) return;
  std::size_t shown = 0;
  for (const bj::value& entry : *omitted) {
    const bj::object* file = entry.if_object();
    if (file == nullptr || ++shown > kNamesShown) continue;
    print_chatter(fmt::format("hutch: {} did not come back ({}): {}\n",
                              printable(text_at(*file, "path")),
                              counted(number_at(*file, "size"), "byte"),
                              printable(omitted_because(text_at(*file, "reason")))));
  }
  const std::uint64_t all =
      std::max<std::uint64_t>(omitted->size(), number_at(*end_, "files_omitted_count"));
  const std::uint64_t named = std::min(shown, kNamesShown);
  if (all > named) print_chatter(fmt::format("hutch: {} more did not come back\n", all - named));
}

void RunSession::tell_files() const {
  if (files_) {
    print_chatter(fmt::format("hutch: {} ({}) written to {}\n", counted(files_->count(), "file"),
                              counted(files_->bytes(), "byte"), printable(plan_.out)));
  } else if (!not_kept_.empty() && !plan_.json && ::isatty(STDERR_FILENO) == 1) {
    // A hint for people; nothing that a script has to skip.
    print_chatter(fmt::format("hutch: {} not kept, {} first; --out DIR keeps them\n",
                              counted(not_kept_.size(), "file"), printable(not_kept_.front())));
  }
}

// Of a server of our own, which waived them by itself; another one's operator knows.
void RunSession::tell_waived() const {
  const bj::object* end = object_at(*end_, "end");
  const bj::array* waived = end == nullptr ? nullptr : array_at(*end, "waived");
  if (waived == nullptr || waived->empty()) return;
  std::string names;
  for (const bj::value& name : *waived) {
    if (!name.is_string()) continue;
    names += (names.empty() ? "" : ", ") + std::string(name.get_string());
  }
  // The program may have left standard error in the middle of a line.
  print_chatter(fmt::format("{}hutch: not limited on this host: {}; `hutch doctor` says why\n",
                            err_.inside_line() && !plan_.json ? "\n" : "", printable(names)));
}

}  // namespace hutch::cli
