#include "warden/launcher_link.h"

#include "base/sys.h"

namespace hutch::warden {

Status LauncherLink::send(std::uint64_t handle, const plan::LaunchRequest& request,
                          std::span<const int> fds) {
  TRY(sys::send_message(socket_, std::as_bytes(std::span(&request, 1)), fds));
  pending_.push_back({handle, request.kind});
  return {};
}

Result<LauncherLink::Answer> LauncherLink::receive() {
  Answer answer;
  sys::Message message =
      TRY(sys::receive_message(socket_, std::as_writable_bytes(std::span(&answer.reply, 1))));
  if (message.size != sizeof answer.reply || message.fds.size() > 1 || pending_.empty()) {
    return fail(ErrorCode::sandbox_lost, Step::launcher_start, "the launcher has ended");
  }
  answer.handle = pending_.front().handle;
  answer.kind = pending_.front().kind;
  pending_.pop_front();
  if (message.fds.size() == 1) answer.pidfd = std::move(message.fds[0]);
  return answer;
}

}  // namespace hutch::warden
