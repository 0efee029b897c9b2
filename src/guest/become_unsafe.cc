// What the launcher's children become: the init of a sandbox, its program, or a courier.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest/guest.h"
#include "guest/message.h"

namespace hutch::guest {
namespace {

using isolation::ActContext;
using isolation::ActReport;

constexpr int kStream = 3;         // code socket, courier's stream, or init's report socket
constexpr int kReport = 4;         // program and courier
constexpr int kWorkDirectory = 4;  // init, until it is sent

ActContext context_for(const GuestPlan& plan, const plan::LaunchRequest& request, int report) {
  ActContext context;
  context.report = report;
  context.fail_step = request.fail_step;
  memcpy(context.cpu_mask, request.cpu_mask, sizeof context.cpu_mask);
  memcpy(context.filters, plan.filters, sizeof context.filters);
  context.argv = plan.argv;
  context.envp = plan.envp;
  return context;
}

void on_child(int /*signal*/) {}

// SIGCHLD is blocked except while waiting, so a child that dies between the last waitpid and the
// wait is never missed.
[[noreturn]] void reap_until_closed() {
  sigset_t nothing;
  sigemptyset(&nothing);
  for (;;) {
    while (waitpid(-1, nullptr, WNOHANG | __WALL) > 0) {
    }
    pollfd socket{kStream, POLLIN, 0};
    if (ppoll(&socket, 1, nullptr, &nothing) <= 0) continue;
    char byte = 0;
    if (read(kStream, &byte, 1) <= 0) _exit(0);
  }
}

// The launcher has every signal at its default but this one.
void reset_signals() { signal(SIGPIPE, SIG_DFL); }

}  // namespace

void become_init(const GuestPlan& plan, const plan::LaunchRequest& request, const int* fds) {
  ActContext context = context_for(plan, request, fds[0]);
  context.placed[0] = {fds[0], kStream, true};
  context.placed[1] = {isolation::kKeptDirectory, kWorkDirectory, true};
  context.placed_count = 2;
  reset_signals();
  struct sigaction action {};
  action.sa_handler = on_child;
  sigaction(SIGCHLD, &action, nullptr);
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, nullptr);
  ActReport report;
  const bool ready = isolation::act_all(plan.init, plan.init_size, &context, &report);
  send_packet(context.report, &report, sizeof report, ready ? kWorkDirectory : -1);
  if (!ready) _exit(1);
  close(kWorkDirectory);
  reap_until_closed();
}

void become_program(const GuestPlan& plan, const plan::LaunchRequest& request, const int* fds) {
  ActContext context = context_for(plan, request, fds[0]);
  context.init_pidfd = fds[1];
  context.placed[0] = {fds[0], kReport, true};
  context.placed[1] = {fds[2], kStream, false};
  context.placed[2] = {fds[3], 1, false};
  context.placed[3] = {fds[4], 2, false};
  context.placed_count = 4;
  context.null_stdin = true;
  reset_signals();
  ActReport report;
  const bool ready = isolation::act_all(plan.program, plan.program_size, &context, &report);
  send_packet(context.report, &report, sizeof report, -1);
  if (!ready) _exit(1);
  // A successful exec closes the report socket; a second report on it means that there was none.
  report = ActReport{};
  isolation::act_all(plan.execute, plan.execute_size, &context, &report);
  send_packet(context.report, &report, sizeof report, -1);
  _exit(1);
}

void become_courier(const GuestPlan& plan, const plan::LaunchRequest& request, const int* fds) {
  ActContext context = context_for(plan, request, fds[0]);
  context.init_pidfd = fds[1];
  context.placed[0] = {fds[0], kReport, true};
  context.placed[1] = {fds[2], kStream, true};
  context.placed_count = 2;
  context.null_stdin = true;
  context.null_output = true;
  context.clears = request.kind == plan::LaunchKind::courier_out;
  reset_signals();
  ActReport report;
  const bool ready = isolation::act_all(plan.courier, plan.courier_size, &context, &report);
  send_packet(context.report, &report, sizeof report, -1);
  if (!ready) _exit(1);
  close(kReport);
  _exit(request.kind == plan::LaunchKind::courier_in ? carry_files_in(kStream)
                                                     : carry_files_out(kStream));
}

}  // namespace hutch::guest
