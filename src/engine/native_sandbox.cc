// Making a sandbox warm, and giving it up.
#include "engine/native_sandbox.h"

#include <array>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <utility>

#include "base/sys.h"
#include "base/utf8.h"

namespace hutch::engine {
namespace {

using warden::Ask;
using warden::Tell;

Error lost(Step step, std::string what) {
  return {ErrorCode::sandbox_lost, step, 0, std::move(what)};
}

// As a JSON string. Module names are the operator's; anything odd in them is escaped all the same.
std::string json_string(std::string_view text) {
  std::string json = "\"";
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || c == '"' || c == '\\' || byte == 0x7f) {
      json += {'\\', 'u', '0', '0', kDigits[byte / 16], kDigits[byte % 16]};
    } else {
      json += c;
    }
  }
  return json + '"';
}

std::string imports_message(const std::vector<std::string>& imports) {
  std::string json = "{\"imports\":[";
  for (const auto& name : imports) {
    if (json.back() != '[') json += ',';
    json += json_string(name);
  }
  json += "]}";
  return wire_bytes(static_cast<std::uint32_t>(json.size())) + json;
}

std::vector<StepTiming> timings_of(const warden::Report& report) {
  std::vector<StepTiming> timings;
  for (std::size_t i = 0; i < report.timings.size() && report.timed_steps[i] != Step::none; ++i) {
    timings.push_back({report.timed_steps[i], report.timings[i]});
  }
  return timings;
}

}  // namespace

NativeSandbox::NativeSandbox(Surroundings& surroundings, std::uint64_t handle)
    : around_(surroundings),
      handle_(handle),
      timer_(surroundings.io),
      out_(std::make_shared<OutputPipe>(surroundings.options.limits.stream_bytes)),
      err_(std::make_shared<OutputPipe>(surroundings.options.limits.stream_bytes)) {}

std::function<void()> NativeSandbox::later(void (NativeSandbox::*then)()) {
  return [weak = weak_from_this(), then] {
    if (const auto self = weak.lock()) (self.get()->*then)();
  };
}

void NativeSandbox::set_timer(std::chrono::milliseconds after, void (NativeSandbox::*then)()) {
  timer_.expires_after(after);
  timer_.async_wait([call = later(then)](const boost::system::error_code& ec) {
    if (!ec) call();
  });
}

void NativeSandbox::ask(Ask what, std::uint32_t timeout_ms) {
  warden::Request request;
  request.ask = what;
  request.handle = handle_;
  request.timeout_ms = timeout_ms;
  request.image = around_.options.image;
  around_.ask(request);
}

void NativeSandbox::create(CreateDone done) {
  create_done_ = std::move(done);
  phase_began_ = around_.clock.mono();
  ask(Ask::create);
  timer_.expires_after(std::chrono::milliseconds(around_.options.ready_ms));
  const auto weak = weak_from_this();
  timer_.async_wait([weak](const boost::system::error_code& ec) {
    const auto self = weak.lock();
    if (ec || !self || !self->create_done_) return;
    self->fail_create(lost(Step::program_ready, "the sandbox did not get ready in time"));
  });
}

void NativeSandbox::on_report(const warden::Report& report, std::vector<Fd> fds) {
  switch (report.tell) {
    case Tell::created: on_created(report, std::move(fds)); break;
    case Tell::ended: on_ended(report); break;
    case Tell::courier: on_courier(std::move(fds)); break;
    case Tell::courier_failed: on_courier_failed(report); break;
    case Tell::courier_ended: on_courier_ended(); break;
    case Tell::failed:
    case Tell::destroyed: on_gone(report); break;
  }
}

void NativeSandbox::on_created(const warden::Report& report, std::vector<Fd> fds) {
  if (phase_ != Phase::creating) return;
  created_.handle = SandboxHandle{handle_};
  created_.timings = timings_of(report);
  phase_ = Phase::loading;
  phase_began_ = around_.clock.mono();
  if (const auto adopted = adopt(std::move(fds)); !adopted) return fail_create(adopted.error());
  code_writer_.add(imports_message(around_.options.imports));
  send_imports();
  code_.when_readable(later(&NativeSandbox::on_ready_byte));
}

Status NativeSandbox::adopt(std::vector<Fd> fds) {
  if (fds.size() != 3) {
    return fail(lost(Step::program_ready, "a sandbox came without its three descriptors"));
  }
  code_ = TRY(WatchedFd::watch(around_.io, std::move(fds[0])));
  TRY(out_->open(around_.io, std::move(fds[1])));
  return err_->open(around_.io, std::move(fds[2]));
}

void NativeSandbox::send_imports() {
  if (phase_ != Phase::loading) return;
  // A peer that has closed shows where its answer is read.
  if (!code_writer_.write_some(code_.get()) || code_writer_.finished()) return;
  code_.when_writable(later(&NativeSandbox::send_imports));
}

void NativeSandbox::on_ready_byte() {
  if (phase_ != Phase::loading) return;
  std::array<std::byte, 1> byte{};
  const auto got = sys::read_some(code_.get(), byte);
  if (got && got->would_block) return code_.when_readable(later(&NativeSandbox::on_ready_byte));
  if (!got || got->size != 1 || byte[0] != std::byte{'R'}) {
    const std::string said = utf8::replace_invalid(err_->discard());
    std::string what = "the interpreter ended before it was ready";
    if (!said.empty()) what += ": " + said.substr(0, said.find('\n'));
    return fail_create(lost(Step::program_ready, std::move(what)));
  }
  // What libraries said while they were imported is not the program's output.
  out_->discard();
  err_->discard();
  timer_.cancel();
  phase_ = Phase::warm;
  const auto micros = (around_.clock.mono() - phase_began_) / std::chrono::microseconds(1);
  created_.timings.push_back({Step::program_ready, static_cast<std::uint32_t>(micros)});
  std::exchange(create_done_, {})(created_);
}

void NativeSandbox::fail_create(Error error) {
  const auto done = std::exchange(create_done_, {});
  close();
  if (done) done(fail(std::move(error)));
}

// The warden has taken it down, asked or not.
void NativeSandbox::on_gone(const warden::Report& report) {
  Error error{ErrorCode::sandbox_lost, Step::run_wait, 0, "the sandbox died"};
  if (report.tell == Tell::failed) {
    error = {ErrorCode::setup_failed, report.step, report.sys_errno, "a sandbox could not be made"};
    if (report.step == Step::none && report.sys_errno == EAGAIN) {
      error = {ErrorCode::busy, Step::none, 0, "every slot for a sandbox is taken"};
    }
  }
  const bool was_warm = phase_ == Phase::warm;
  abandon(error);
  if (was_warm) around_.warm_lost(SandboxHandle{handle_});
}

void NativeSandbox::abandon(const Error& error) {
  phase_ = Phase::closing;
  timer_.cancel();
  code_.reset();
  out_->close();
  err_->close();
  files_in_.reset();
  files_out_.reset();
  if (const auto done = std::exchange(create_done_, {})) done(fail(error));
  if (const auto done = std::exchange(run_done_, {})) done(fail(error));
}

void NativeSandbox::destroy() {
  if (phase_ != Phase::closing) close();
}

void NativeSandbox::close() {
  phase_ = Phase::closing;
  timer_.cancel();
  code_.reset();
  out_->close();
  err_->close();
  files_in_.reset();
  files_out_.reset();
  ask(Ask::destroy);
}

}  // namespace hutch::engine
