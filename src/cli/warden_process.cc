#include "cli/warden_process.h"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

namespace hutch::cli {
namespace {

constexpr int kPatienceMs = 10'000;

}  // namespace

void WardenProcess::note(pid_t child, int status) {
  if (child != pid_) return;
  ended_ = true;
  const bool by_signal = WIFSIGNALED(status);
  const int number = by_signal ? WTERMSIG(status) : WEXITSTATUS(status);
  if (by_signal || number != 0) {
    log_.error("warden_ended", "the warden ended badly",
               {{"pid", child}, {by_signal ? "signal" : "status", number}});
  } else {
    log_.info("warden_ended", "the warden has taken everything down", {{"pid", child}});
  }
}

void WardenProcess::reap() {
  int status = 0;
  for (pid_t child = 0; (child = ::waitpid(-1, &status, WNOHANG)) > 0;) note(child, status);
}

WardenProcess::~WardenProcess() {
  if (!ended_) {
    const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    pollfd ended{process.get(), POLLIN, 0};
    if (process) static_cast<void>(::poll(&ended, 1, kPatienceMs));
  }
  reap();
  if (!ended_) {
    log_.error("warden_stays", "the warden has not ended; the next start waits for it",
               {{"pid", pid_}});
  }
}

}  // namespace hutch::cli
