#include "engine/fake_engine.h"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include "engine/stream_capture.h"

namespace hutch::engine {
namespace {

using model::Cause;

// What the text of a run asks for.
struct Script {
  std::vector<OutputPiece> output;  // in the order of the lines
  model::ShotResult result;
  std::optional<Error> error;
  bool hangs = false;
  std::chrono::milliseconds wait{0};
};

std::uint64_t number(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Takes the first word off the text.
std::string_view word(std::string_view& text) {
  const std::string_view first = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(text.size(), first.size() + 1));
  return first;
}

std::string unhex(std::string_view text) {
  std::string bytes;
  for (; text.size() >= 2; text.remove_prefix(2)) {
    unsigned value = 0;
    std::from_chars(text.data(), text.data() + 2, value, 16);
    bytes += static_cast<char>(value);
  }
  return bytes;
}

model::OmitReason reason_named(std::string_view name) {
  using Reason = model::OmitReason;
  for (const Reason reason :
       {Reason::too_large, Reason::total, Reason::count, Reason::not_regular, Reason::unreadable}) {
    if (model::omit_reason_name(reason) == name) return reason;
  }
  return model::OmitReason::name;
}

void end_as(Script& script, Cause cause, bool by_signal, int status,
            std::optional<std::uint64_t> limit) {
  model::Outcome& outcome = script.result.outcome;
  outcome.cause = cause;
  outcome.by_signal = by_signal;
  outcome.status = status;
  outcome.limit = limit;
}

constexpr int kSigkill = 9;
constexpr std::uint64_t kFloodPiece = 64_KiB;

// The commands that say how the program ends; false for any other.
bool apply_end(Script& script, const model::ShotSpec& spec, const model::Limits& limits,
               std::string_view command, std::string_view rest) {
  if (command == "exit") {
    end_as(script, Cause::exited, false, static_cast<int>(number(rest)), {});
  } else if (command == "signal") {
    end_as(script, Cause::signaled, true, static_cast<int>(number(rest)), {});
  } else if (command == "timeout") {
    end_as(script, Cause::timeout, true, kSigkill, spec.timeout_s);
    script.result.duration_ms = std::uint64_t{spec.timeout_s} * 1000 + 3;
  } else if (command == "memory") {
    end_as(script, Cause::memory, true, kSigkill, limits.memory_bytes);
  } else if (command == "processes") {
    end_as(script, Cause::processes, false, 1, limits.processes);
  } else if (command == "disk") {
    end_as(script, Cause::disk, false, 1, limits.disk_bytes);
  } else if (command == "hang") {
    script.hangs = true;
  } else if (command == "lost") {
    script.error = Error{ErrorCode::sandbox_lost, Step::run_wait, 0, "the sandbox died"};
  } else if (command == "unstarted") {
    script.error = Error{ErrorCode::sandbox_lost, Step::run_start, 0, "the sandbox was dead"};
  } else if (command == "unreadable") {
    script.error = Error{ErrorCode::unreadable_reply, Step::files_out, 0, "the files are garbled"};
  } else if (command == "reject") {
    script.error = Error{ErrorCode::rejected, Step::files_in, 0, std::string(rest)};
  } else {
    return false;
  }
  return true;
}

void apply_output(Script& script, const model::ShotSpec& spec, std::string_view command,
                  std::string_view rest) {
  const auto write = [&script](std::string bytes) {
    script.output.push_back({OutputStream::out, std::move(bytes)});
  };
  if (command == "stdout") {
    write(std::string(rest) + "\n");
  } else if (command == "stderr") {
    script.output.push_back({OutputStream::err, std::string(rest) + "\n"});
  } else if (command == "bytes") {
    write(unhex(rest));
  } else if (command == "flood") {
    for (std::uint64_t left = number(rest); left > 0; left -= std::min(left, kFloodPiece)) {
      write(std::string(std::min(left, kFloodPiece), 'x'));
    }
  } else if (command == "list") {
    for (const auto& file : spec.files) {
      write(file.path + " " + std::to_string(file.bytes.size()) + "\n");
    }
  } else if (command == "args") {
    for (const auto& arg : spec.args) write(arg + "\n");
  } else if (command == "file") {
    const std::string_view name = word(rest);
    script.result.files.push_back({std::string(name), std::string(rest)});
  } else if (command == "omitted") {
    const std::string_view name = word(rest);
    const std::uint64_t size = number(word(rest));
    script.result.omitted.push_back({std::string(name), size, reason_named(rest)});
    script.result.omitted_count += 1;
  } else if (command == "deleted") {
    script.result.deleted.emplace_back(rest);
  } else if (command == "duration") {
    script.result.duration_ms = number(rest);
  } else if (command == "wait") {
    script.wait = std::chrono::milliseconds(number(rest));
  }
}

Script read_script(const model::ShotSpec& spec, const model::Limits& limits) {
  Script script;
  script.result.duration_ms = 38;
  script.result.outcome.cause = Cause::exited;
  script.result.outcome.memory_peak_bytes = 8_MiB;
  script.result.outcome.cpu_ms = 10;
  std::string_view text = spec.code;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line == "print(2**32)") script.output.push_back({OutputStream::out, "4294967296\n"});
    constexpr std::string_view kPrefix = "#fake ";
    if (!line.starts_with(kPrefix)) continue;
    line.remove_prefix(kPrefix.size());
    const std::string_view command = word(line);
    if (!apply_end(script, spec, limits, command, line)) apply_output(script, spec, command, line);
  }
  return script;
}

model::StreamText captured(const Script& script, OutputStream stream, std::uint64_t bytes_max) {
  StreamCapture capture(bytes_max);
  for (const OutputPiece& piece : script.output) {
    if (piece.stream == stream) capture.add(std::as_bytes(std::span(piece.bytes)));
  }
  return capture.take();
}

// What `captured` tells of a run that was followed live.
model::StreamText counted(const Script& script, OutputStream stream) {
  model::StreamText text;
  for (const OutputPiece& piece : script.output) {
    if (piece.stream == stream) text.total_bytes += piece.bytes.size();
  }
  return text;
}

// Whether the script's error comes before the program has its code.
bool never_began(const Script& script) {
  return script.error && script.error->step != Step::run_wait &&
         script.error->step != Step::files_out;
}

Error gone() { return {ErrorCode::warden_gone, Step::none, 0, "the privileged side has ended"}; }

}  // namespace

struct FakeEngine::Run {
  explicit Run(boost::asio::io_context& io) : timer(io) {}
  Script script;
  std::shared_ptr<LiveOutput> live;
  std::size_t written = 0;  // pieces
  std::function<void(Result<model::ShotResult>)> done;
  boost::asio::steady_timer timer;
};

FakeEngine::FakeEngine(boost::asio::io_context& io, FakeEngineOptions options)
    : io_(io), options_(std::move(options)), alive_(std::make_shared<bool>(true)) {}

FakeEngine::~FakeEngine() { *alive_ = false; }

void FakeEngine::create(std::function<void(Result<Created>)> done) {
  const std::uint64_t number = ++creates_asked_;
  creating_.emplace(number, std::move(done));
  auto timer = std::make_shared<boost::asio::steady_timer>(io_, options_.create_latency);
  timer->async_wait([this, alive = alive_, number, timer](const boost::system::error_code&) {
    if (!*alive) return;
    const auto found = creating_.find(number);
    if (found == creating_.end()) return;
    const auto call = std::move(found->second);
    creating_.erase(found);
    if (dead_) return call(fail(gone()));
    if (create_error_) return call(fail(*create_error_));
    const SandboxHandle handle{++last_handle_};
    warm_.insert(handle);
    call(Created{handle, {{Step::init_clone, 100}, {Step::program_ready, 900}}});
  });
}

void FakeEngine::run(SandboxHandle handle, std::shared_ptr<const model::ShotSpec> spec,
                     std::shared_ptr<LiveOutput> live,
                     std::function<void(Result<model::ShotResult>)> done) {
  used_.push_back(handle);
  if (dead_ || warm_.erase(handle) == 0) {
    const Error error =
        dead_ ? gone() : Error{ErrorCode::sandbox_lost, Step::run_start, 0, "the sandbox was dead"};
    boost::asio::post(io_, [done = std::move(done), error] { done(fail(error)); });
    return;
  }
  auto run = std::make_shared<Run>(io_);
  run->script = read_script(*spec, options_.limits);
  const Script& script = run->script;
  for (const OutputStream stream : {OutputStream::out, OutputStream::err}) {
    auto& text = stream == OutputStream::out ? run->script.result.out : run->script.result.err;
    text = live ? counted(script, stream) : captured(script, stream, options_.limits.stream_bytes);
  }
  run->live = std::move(live);
  run->done = std::move(done);
  running_.emplace(handle, run);
  if (!run->live || never_began(script)) return end_later(handle, run);
  boost::asio::post(io_, [this, alive = alive_, handle, run] {
    if (!*alive) return;
    run->live->begin();
    write_live(handle, run);
  });
}

void FakeEngine::write_live(SandboxHandle handle, const std::shared_ptr<Run>& run) {
  if (!running_.contains(handle)) return;
  if (run->written == run->script.output.size()) return end_later(handle, run);
  const OutputPiece& piece = run->script.output[run->written];
  // Weak: the run holds what holds this callback.
  auto go_on = [this, alive = alive_, handle, weak = std::weak_ptr(run)] {
    const auto held = weak.lock();
    if (*alive && held) write_live(handle, held);
  };
  if (run->live->full(piece.stream)) {
    // Called from inside take(): what is written comes after that.
    run->live->when_room(piece.stream, [&io = io_, go_on] { boost::asio::post(io, go_on); });
    return;
  }
  ++run->written;
  run->live->add(piece.stream, piece.bytes);
  boost::asio::post(io_, std::move(go_on));
}

void FakeEngine::end_later(SandboxHandle handle, const std::shared_ptr<Run>& run) {
  if (run->script.hangs) return;
  run->timer.expires_after(run->script.wait);
  run->timer.async_wait([this, alive = alive_, handle, run](const boost::system::error_code& ec) {
    if (ec || !*alive) return;
    if (run->script.error) return finish(handle, fail(*run->script.error));
    finish(handle, std::move(run->script.result));
  });
}

void FakeEngine::finish(SandboxHandle handle, Result<model::ShotResult> result) {
  const auto found = running_.find(handle);
  if (found == running_.end()) return;
  const auto done = std::move(found->second->done);
  running_.erase(found);
  done(std::move(result));
}

void FakeEngine::cancel(SandboxHandle handle) {
  boost::asio::post(io_, [this, alive = alive_, handle] {
    if (!*alive) return;
    const auto found = running_.find(handle);
    if (found == running_.end()) return;
    const auto run = found->second;
    run->timer.cancel();
    end_as(run->script, Cause::cancelled, true, kSigkill, {});
    finish(handle, std::move(run->script.result));
  });
}

void FakeEngine::destroy(SandboxHandle handle) { warm_.erase(handle); }

void FakeEngine::on_warm_lost(std::function<void(SandboxHandle)> callback) {
  warm_lost_ = std::move(callback);
}

void FakeEngine::on_fatal(std::function<void(Error)> callback) { fatal_ = std::move(callback); }

std::uint32_t FakeEngine::live() const {
  return static_cast<std::uint32_t>(creating_.size() + warm_.size() + running_.size());
}

void FakeEngine::kill_warm(SandboxHandle handle) {
  if (warm_.erase(handle) == 0) return;
  boost::asio::post(io_, [this, alive = alive_, handle] {
    if (*alive && warm_lost_) warm_lost_(handle);
  });
}

void FakeEngine::die() {
  if (std::exchange(dead_, true)) return;
  boost::asio::post(io_, [this, alive = alive_] {
    if (!*alive) return;
    warm_.clear();
    for (const auto& [number, done] : std::exchange(creating_, {})) done(fail(gone()));
    for (const auto& [handle, run] : std::exchange(running_, {})) {
      run->timer.cancel();
      run->done(fail(gone()));
    }
    if (fatal_) fatal_(gone());
  });
}

std::vector<SandboxHandle> FakeEngine::warm() const { return {warm_.begin(), warm_.end()}; }

}  // namespace hutch::engine
