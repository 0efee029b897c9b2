#include "engine/warden_link.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "base/sys.h"

namespace hutch::engine {
namespace {

constexpr int kReportsAtOnce = 64;

Error gone_error(const char* what) { return {ErrorCode::warden_gone, Step::none, 0, what}; }

}  // namespace

void WardenLink::start(Fd socket) {
  auto watched = WatchedFd::watch(io_, std::move(socket));
  if (!watched) return fail_later(gone_error("the socket to the privileged side cannot be used"));
  socket_ = std::move(*watched);
  const auto weak = weak_from_this();
  socket_.when_readable([weak] {
    if (const auto self = weak.lock()) self->receive();
  });
}

void WardenLink::close() {
  socket_.reset();
  handlers_ = {};
}

void WardenLink::ask(const warden::Request& request) {
  if (!socket_) return;
  waiting_.push_back(request);
  if (!awaiting_room_) flush();
}

void WardenLink::flush() {
  awaiting_room_ = false;
  while (!waiting_.empty()) {
    const auto sent =
        sys::send_message(socket_.get(), std::as_bytes(std::span(&waiting_.front(), 1)), {});
    if (sent) {
      waiting_.pop_front();
      continue;
    }
    // Any other failure shows as the end of what can be received, after the reports on the way.
    if (!sys::would_block(sent.error())) return waiting_.clear();
    awaiting_room_ = true;
    const auto weak = weak_from_this();
    socket_.when_writable([weak] {
      if (const auto self = weak.lock()) self->flush();
    });
    return;
  }
}

void WardenLink::receive() {
  for (int i = 0; i < kReportsAtOnce && socket_; ++i) {
    warden::Report report;
    auto message =
        sys::receive_message(socket_.get(), std::as_writable_bytes(std::span(&report, 1)));
    if (message && message->would_block) break;
    if (!message || message->size == 0) {
      return fail_later(gone_error("the privileged side has ended"));
    }
    if (message->size != sizeof report || message->truncated) {
      return fail_later(gone_error("the privileged side sent something that is not a report"));
    }
    if (handlers_.report) handlers_.report(report, std::move(message->fds));
  }
  if (!socket_) return;
  const auto weak = weak_from_this();
  socket_.when_readable([weak] {
    if (const auto self = weak.lock()) self->receive();
  });
}

void WardenLink::fail_later(Error error) {
  socket_.reset();
  waiting_.clear();
  const auto weak = weak_from_this();
  boost::asio::post(io_, [weak, error = std::move(error)] {
    const auto self = weak.lock();
    if (!self) return;
    if (const auto gone = std::exchange(self->handlers_.gone, {})) gone(error);
  });
}

}  // namespace hutch::engine
