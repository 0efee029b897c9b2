// The warden's side of the launcher: requests go out, replies come back in the same order.
#pragma once

#include <cstdint>
#include <deque>
#include <span>

#include "base/fd.h"
#include "base/result.h"
#include "plan/launcher_wire.h"

namespace hutch::warden {

class LauncherLink {
 public:
  explicit LauncherLink(int socket) : socket_(socket) {}

  // `fds` as launcher_wire.h says for the kind; they are borrowed.
  Status send(std::uint64_t handle, const plan::LaunchRequest& request, std::span<const int> fds);

  struct Answer {
    std::uint64_t handle = 0;
    plan::LaunchKind kind{};
    plan::LaunchReply reply;
    Fd pidfd;  // none when the clone failed
  };
  // The next reply. Error: the launcher is gone or talks nonsense; nothing works any more.
  Result<Answer> receive();

 private:
  struct Pending {
    std::uint64_t handle;
    plan::LaunchKind kind;
  };
  int socket_;
  std::deque<Pending> pending_;
};

}  // namespace hutch::warden
