#include "cli/warden_process.h"

#include <sys/wait.h>

#include "cli/alarm.h"

namespace hutch::cli {
namespace {

constexpr unsigned kPatienceSeconds = 10;

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
  const Alarm alarm(kPatienceSeconds);
  int status = 0;
  for (pid_t child = 0; (child = ::waitpid(-1, &status, 0)) > 0;) note(child, status);
  if (!ended_) {
    log_.error("warden_stays", "the warden has not ended; the next start waits for it",
               {{"pid", pid_}});
  }
}

}  // namespace hutch::cli
