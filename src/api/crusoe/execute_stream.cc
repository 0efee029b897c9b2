#include "api/crusoe/execute_stream.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "api/crusoe/convert.h"
#include "api/crusoe/errors.h"

namespace hutch::api::crusoe {
namespace {

using boost::asio::awaitable;

// Events that are ready together go out together, up to about this much.
constexpr std::size_t kBatchBytes = 64_KiB;

}  // namespace

ExecuteStream::ExecuteStream(boost::asio::any_io_executor executor, service::Shots& shots,
                             Metrics& metrics, Options options)
    : shots_(shots),
      metrics_(metrics),
      options_(options),
      live_(std::make_shared<service::LiveShot>()),
      cancellation_(std::make_shared<service::Cancellation>()),
      change_(std::move(executor)) {}

awaitable<std::optional<Error>> ExecuteStream::begin(model::ShotSpec spec) {
  const auto self = shared_from_this();
  std::weak_ptr<ExecuteStream> weak = self;
  std::function<void()> changed = [weak] {
    if (const auto alive = weak.lock()) alive->wake();
  };
  live_->output.on_change(std::move(changed));
  // The handler holds this object until the run is over, whoever else has gone.
  auto hold = [self](const std::exception_ptr&) {};
  boost::asio::co_spawn(change_.get_executor(), run(std::move(spec)), std::move(hold));
  while (!answer_ && !live_->output.begun()) {
    co_await await_change(std::chrono::milliseconds::max());
  }
  const bool failed = answer_ && !answer_->has_value() && !live_->output.begun();
  if (failed) co_return answer_->error();
  co_return std::nullopt;
}

awaitable<void> ExecuteStream::run(model::ShotSpec spec) {
  try {
    auto pending = shots_.run(std::move(spec), cancellation_, live_);
    auto answer = co_await std::move(pending);
    if (answer) {
      metrics_.observe(*answer);
      // Held from now on, however slowly the client takes what stands before them.
      for (const model::OutputFile& file : answer->result.files) files_bytes_ += file.bytes.size();
    }
    answer_ = std::move(answer);
  } catch (const std::exception&) {
    answer_ = fail(ErrorCode::internal, "an exception ended the run");
  }
  wake();
}

// The timer is the signal: whoever waits looks at everything before each wait.
void ExecuteStream::wake() {
  tell_held();
  change_.cancel();
}

// Whether something has changed before the time was up.
awaitable<bool> ExecuteStream::await_change(std::chrono::milliseconds at_most) {
  if (at_most == std::chrono::milliseconds::max()) {
    change_.expires_at(boost::asio::steady_timer::time_point::max());
  } else {
    change_.expires_after(at_most);
  }
  boost::system::error_code ec;
  auto token = boost::asio::redirect_error(boost::asio::use_awaitable, ec);
  co_await change_.async_wait(token);
  co_return static_cast<bool>(ec);
}

void ExecuteStream::tell_held() {
  if (writer_ == nullptr) return;
  writer_->hold(live_->output.held_bytes() + writing_bytes_ + files_bytes_);
}

awaitable<void> ExecuteStream::send(http::BodyWriter& writer) {
  const auto self = shared_from_this();
  writer_ = &writer;
  std::exception_ptr failure;
  try {
    auto pending = send_events(writer);
    co_await std::move(pending);
  } catch (...) {
    failure = std::current_exception();
  }
  writer_ = nullptr;
  // Without effect on a run that has ended. The connection's end says that it has.
  cancel();
  while (!answer_) co_await await_change(std::chrono::milliseconds::max());
  if (failure) std::rethrow_exception(failure);
}

awaitable<void> ExecuteStream::send_events(http::BodyWriter& writer) {
  std::string batch;
  events_.start(batch, live_->sandbox_id);
  for (;;) {
    while (batch.size() < kBatchBytes) {
      auto piece = live_->output.take();
      if (!piece) break;
      events_.output(batch, std::move(*piece));
    }
    if (batch.empty()) {
      if (answer_) break;
      if (co_await await_change(options_.still_running)) continue;
      batch = EventWriter::kStillRunning;
    }
    if (!co_await put(writer, std::exchange(batch, {}))) co_return;
  }
  auto pending = send_end(writer);
  co_await std::move(pending);
}

awaitable<void> ExecuteStream::send_end(http::BodyWriter& writer) {
  std::string batch;
  if (!answer_->has_value()) {
    events_.end_output(batch, "");
    events_.error(batch, error_answer(answer_->error()).body);
    co_await put(writer, std::move(batch));
    co_return;
  }
  ExecuteAnswer answer = to_answer(std::move(answer_->value()), options_.timeout_s, Report::full);
  events_.end_output(batch, answer.stderr_text);
  for (AnswerFile& file : *answer.files) {
    events_.file(batch, file);
    files_bytes_ -= file.bytes.size();
    file.bytes = std::string();
    if (batch.size() < kBatchBytes) continue;
    if (!co_await put(writer, std::exchange(batch, {}))) co_return;
  }
  events_.exit(batch, answer);
  co_await put(writer, std::move(batch));
}

awaitable<bool> ExecuteStream::put(http::BodyWriter& writer, std::string bytes) {
  writing_bytes_ = bytes.size();
  tell_held();
  auto pending = writer.write(std::move(bytes));
  const bool sent = co_await std::move(pending);
  writing_bytes_ = 0;
  co_return sent;
}

}  // namespace hutch::api::crusoe
