// Running a program in a warm sandbox: its files, its code, its output, its end, its files again.
#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <utility>

#include "base/sys.h"
#include "engine/native_sandbox.h"
#include "engine/outcome_decide.h"

namespace hutch::engine {
namespace {

using warden::Ask;

constexpr std::uint32_t kTimeoutMsMax = 86'400'000;
constexpr int kFilesOutTriesMax = 2;
// How long the warden's word on why a courier died is waited for.
constexpr std::chrono::milliseconds kReasonPatience{1000};

Error lost(Step step, std::string what) {
  return {ErrorCode::sandbox_lost, step, 0, std::move(what)};
}

Error never_started() {
  return lost(Step::run_start, "the sandbox died before it got the program");
}

Error rejected(std::string sentence) {
  return {ErrorCode::rejected, Step::files_in, 0, std::move(sentence)};
}

std::string do_not_fit(std::string_view what, std::uint64_t limit, std::string_view unit) {
  return "the files do not fit: " + std::string(what) + " limit is " + std::to_string(limit) + " " +
         std::string(unit);
}

Error verdict_error(const plan::Verdict& verdict, const model::ShotSpec& spec,
                    const model::Limits& limits) {
  constexpr std::string_view kPlace = "the working directory's";
  switch (verdict.verdict) {
    case plan::CourierVerdict::no_space:
      return rejected(do_not_fit(kPlace, limits.disk_bytes, "bytes"));
    case plan::CourierVerdict::no_inodes:
      return rejected(do_not_fit(kPlace, limits.inodes, "files and directories"));
    case plan::CourierVerdict::bad_path:
      // The index comes from the sandbox.
      if (verdict.file_index < spec.files.size()) {
        return rejected("file path cannot be used: '" + spec.files[verdict.file_index].path + "'");
      }
      break;
    case plan::CourierVerdict::ok:
    case plan::CourierVerdict::io:
    case plan::CourierVerdict::bad_message: break;
  }
  return {ErrorCode::sandbox_lost, Step::files_in, verdict.sys_errno,
          "the files could not be written"};
}

// The program's arguments as its start file reads them: a NUL behind each.
std::string arguments_message(const std::vector<std::string>& args) {
  std::string bytes;
  for (const std::string& arg : args) bytes.append(arg).append(1, '\0');
  return wire_bytes(static_cast<std::uint32_t>(bytes.size())) + bytes;
}

CourierOptions courier_options(const NativeEngineOptions& options) {
  return {options.limits, std::chrono::milliseconds(options.courier_ms)};
}

}  // namespace

void NativeSandbox::run(std::shared_ptr<const model::ShotSpec> spec,
                        std::shared_ptr<LiveOutput> live, RunDone done) {
  spec_ = std::move(spec);
  live_ = std::move(live);
  run_done_ = std::move(done);
  if (spec_->files.empty()) return begin_program();
  phase_ = Phase::files_in;
  await_courier(&NativeSandbox::give_up_files_in);
  ask(Ask::files_in);
}

void NativeSandbox::await_courier(void (NativeSandbox::*give_up)()) {
  set_timer(std::chrono::milliseconds(around_.options.courier_ms), give_up);
}

void NativeSandbox::on_courier(std::vector<Fd> fds) {
  if (phase_ != Phase::files_in && phase_ != Phase::files_out) return;
  Result<WatchedFd> stream = fail(lost(Step::files_in, "a courier came without its descriptor"));
  if (fds.size() == 1) stream = WatchedFd::watch(around_.io, std::move(fds[0]));
  if (!stream) return finish(fail(stream.error()));
  timer_.cancel();  // from here on the client of the courier watches it
  const auto weak = weak_from_this();
  if (phase_ == Phase::files_in) {
    files_in_ = std::make_shared<FilesInClient>(around_.io, std::move(*stream), spec_,
                                                courier_options(around_.options),
                                                [weak](Result<plan::Verdict> verdict) {
                                                  if (const auto self = weak.lock())
                                                    self->on_files_in(std::move(verdict));
                                                });
    files_in_->start();
  } else {
    files_out_ = std::make_shared<FilesOutClient>(around_.io, std::move(*stream), spec_,
                                                  courier_options(around_.options),
                                                  [weak](Result<ReturnedFiles> returned) {
                                                    if (const auto self = weak.lock())
                                                      self->on_files_out(std::move(returned));
                                                  });
    files_out_->start();
  }
}

void NativeSandbox::on_courier_failed(const warden::Report& report) {
  if (phase_ == Phase::files_in) {
    Error error = never_started();
    error.sys_errno = report.sys_errno;
    finish(fail(std::move(error)));
  } else if (phase_ == Phase::files_out) {
    courier_over_ = true;
    retry_files_out();
  }
}

void NativeSandbox::on_courier_ended() {
  courier_over_ = true;
  if (phase_ == Phase::files_in && files_are_in_) return begin_program();
  if (phase_ == Phase::files_out && retry_awaits_end_) retry_files_out();
}

void NativeSandbox::on_files_in(Result<plan::Verdict> verdict) {
  if (phase_ != Phase::files_in) return;
  if (!verdict) {
    // Why it died is the warden's to say: the kernel may have killed it for memory, and then kills
    // the waiting program as well.
    set_timer(kReasonPatience, &NativeSandbox::give_up_files_in);
    return;
  }
  if (verdict->verdict != plan::CourierVerdict::ok) {
    return finish(fail(verdict_error(*verdict, *spec_, around_.options.limits)));
  }
  files_are_in_ = true;
  if (courier_over_) return begin_program();
  await_courier(&NativeSandbox::give_up_files_in);
}

void NativeSandbox::give_up_files_in() {
  if (phase_ == Phase::files_in) {
    finish(fail(lost(Step::files_in, "the process that writes the files died")));
  }
}

void NativeSandbox::begin_program() {
  phase_ = Phase::running;
  phase_began_ = around_.clock.mono();
  timer_.cancel();
  files_in_.reset();
  courier_over_ = false;
  const std::uint64_t timeout_ms = std::uint64_t{spec_->timeout_s} * 1000;
  ask(Ask::arm, static_cast<std::uint32_t>(
                    std::clamp<std::uint64_t>(timeout_ms, 1, std::uint64_t{kTimeoutMsMax})));
  code_writer_.add(arguments_message(spec_->args) + wire_bytes(std::uint64_t{spec_->code.size()}));
  code_writer_.add_view(spec_->code);
  if (!live_) read_output();
  write_code();
}

void NativeSandbox::read_output() {
  out_->start(live_, OutputStream::out, later(&NativeSandbox::on_output_ended));
  err_->start(live_, OutputStream::err, later(&NativeSandbox::on_output_ended));
}

void NativeSandbox::write_code() {
  if (phase_ != Phase::running) return;
  // A program that has died shows by the warden's report, which says how.
  if (!code_writer_.write_some(code_.get())) return;
  if (code_writer_.finished()) return await_start();
  code_.when_writable(later(&NativeSandbox::write_code));
}

// Who follows the run is told that it began once no other sandbox can be tried any more: when the
// program has taken its code and closed the socket. It has written nothing before that.
void NativeSandbox::await_start() {
  if (live_) code_.when_readable(later(&NativeSandbox::on_code_closed));
}

void NativeSandbox::on_code_closed() {
  if (phase_ != Phase::running) return;
  std::array<std::byte, 1> byte{};
  const auto got = sys::read_some(code_.get(), byte);
  if (got && got->would_block) return await_start();
  // The kernel tells of a reset once; the warden's report says what became of the program.
  code_refused_ = !got && got.error().sys_errno == ECONNRESET;
  if (code_refused_) return;
  live_->begin();
  read_output();
}

// A stream socket that its peer closed with bytes unread gives a reset, not an end of file: so it
// can be told whether the program took all of its code.
bool NativeSandbox::program_got_its_code() {
  if (!code_writer_.finished() || code_refused_) return false;
  std::array<std::byte, 1> byte{};
  const auto got = sys::read_some(code_.get(), byte);
  return got || got.error().sys_errno != ECONNRESET;
}

void NativeSandbox::on_ended(const warden::Report& report) {
  if (ended_) return;
  ended_ = report;
  switch (phase_) {
    case Phase::creating:
    case Phase::loading:
      // Its words are still in the pipe and on the way; the closed socket brings them up.
      break;
    case Phase::warm:
      close();
      around_.warm_lost(SandboxHandle{handle_});
      break;
    case Phase::files_in: on_ended_before_start(report); break;
    case Phase::running: begin_grace(); break;
    case Phase::grace:
    case Phase::files_out:
    case Phase::closing: break;
  }
}

void NativeSandbox::on_ended_before_start(const warden::Report& report) {
  if ((report.flags & warden::kStopped) != 0) return finish_cancelled();
  if ((report.flags & warden::kMemoryKilled) != 0) {
    const std::uint64_t limit = around_.options.limits.memory_bytes;
    return finish(fail(rejected(do_not_fit("the sandbox's memory", limit, "bytes"))));
  }
  finish(fail(never_started()));
}

void NativeSandbox::begin_grace() {
  outcome_ = decide_outcome(*ended_, around_.options.limits, spec_->timeout_s);
  outcome_.waived = around_.options.waived;
  measured_us_ = static_cast<std::uint64_t>((around_.clock.mono() - phase_began_) /
                                            std::chrono::microseconds(1));
  if (outcome_.cause == model::Cause::cancelled) return finish_cancelled();
  constexpr std::uint32_t kEndedByUs = warden::kTimedOut | warden::kMemoryKilled;
  if ((ended_->flags & kEndedByUs) == 0 && !program_got_its_code()) {
    return finish(fail(never_started()));
  }
  phase_ = Phase::grace;
  if (live_ && !live_->begun()) {
    live_->begin();
    read_output();
  }
  out_->read_now();
  err_->read_now();
  const bool over = out_->ended() && err_->ended();
  if (over || outcome_.cause == model::Cause::timeout) return end_output();
  set_timer(std::chrono::milliseconds(around_.options.output_grace_ms), &NativeSandbox::end_output);
}

void NativeSandbox::on_output_ended() {
  if (phase_ == Phase::grace && out_->ended() && err_->ended()) end_output();
}

void NativeSandbox::end_output() {
  if (phase_ != Phase::grace) return;
  timer_.cancel();
  out_->close();
  err_->close();
  code_.reset();
  if ((ended_->flags & warden::kWorkEmpty) != 0) {
    ReturnedFiles none;
    none.deleted = all_deleted(spec_->files);
    return finish_with_output(std::move(none));
  }
  phase_ = Phase::files_out;
  begin_files_out();
}

void NativeSandbox::begin_files_out() {
  files_out_tries_ += 1;
  courier_over_ = false;
  retry_awaits_end_ = false;
  await_courier(&NativeSandbox::give_up_files_out);
  ask(Ask::files_out);
}

void NativeSandbox::give_up_files_out() {
  if (phase_ != Phase::files_out) return;
  finish(fail(ErrorCode::unreadable_reply, Step::files_out,
              "the process that reads the files did not start, or did not end"));
}

void NativeSandbox::retry_files_out() {
  files_out_.reset();
  if (files_out_tries_ < kFilesOutTriesMax) return begin_files_out();
  finish(
      fail(ErrorCode::unreadable_reply, Step::files_out, "the process that reads the files died"));
}

void NativeSandbox::on_files_out(Result<ReturnedFiles> returned) {
  if (phase_ != Phase::files_out) return;
  if (returned) return finish_with_output(std::move(*returned));
  if (returned.error().code != ErrorCode::sandbox_lost) return finish(fail(returned.error()));
  // A second courier is only made once the first is reaped.
  retry_awaits_end_ = true;
  if (courier_over_) return retry_files_out();
  await_courier(&NativeSandbox::give_up_files_out);
}

void NativeSandbox::cancel() {
  if (std::exchange(cancelled_, true)) return;
  if (phase_ == Phase::files_in || phase_ == Phase::running) return ask(Ask::stop);
  // The program has ended by itself: what remains is not worth waiting for.
  boost::asio::post(around_.io, later(&NativeSandbox::finish_cancelled));
}

void NativeSandbox::finish_cancelled() {
  if (!run_done_) return;
  outcome_.cause = model::Cause::cancelled;
  outcome_.limit.reset();
  finish_with_output({});
}

void NativeSandbox::finish_with_output(ReturnedFiles files) {
  model::ShotResult result;
  result.out = out_->take();
  result.err = err_->take();
  result.outcome = outcome_;
  const std::uint64_t told_us = ended_ ? ended_->duration_us : 0;
  // 0: the program had ended before its warden heard that it had begun.
  result.duration_ms = (told_us != 0 ? told_us : measured_us_) / 1000;
  result.files = std::move(files.files);
  result.omitted = std::move(files.omitted);
  result.omitted_count = files.omitted_count;
  result.deleted = std::move(files.deleted);
  finish(std::move(result));
}

void NativeSandbox::finish(Result<model::ShotResult> result) {
  const auto done = std::exchange(run_done_, {});
  if (phase_ != Phase::closing) close();
  if (done) done(std::move(result));
}

}  // namespace hutch::engine
