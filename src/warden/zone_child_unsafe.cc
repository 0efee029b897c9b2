#include <errno.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "isolation/act.h"
#include "isolation/launch.h"
#include "isolation/packet.h"
#include "plan/launcher_wire.h"
#include "warden/zone_child.h"

namespace hutch::warden {
namespace {

using isolation::ActContext;
using isolation::ActReport;

constexpr int kProgram = 5;
constexpr int kReport = 6;

void send_report(int socket, const ActReport& report, int fd) {
  isolation::send_packet(socket, &report, sizeof report, fd);
}

[[noreturn]] void give_up(int socket, Step step, int error) {
  ActReport report;
  report.failed_step = step;
  report.sys_errno = error;
  send_report(socket, report, -1);
  _exit(70);
}

[[noreturn]] void execute(const char* role, int program, int report) {
  char name[] = "hutch-guest";
  char what[16]{};
  strncpy(what, role, sizeof what - 1);
  char* const argv[] = {name, what, nullptr};
  char* const envp[] = {nullptr};
  give_up(report, Step::launcher_start, isolation::execute_descriptor(program, argv, envp));
}

// The launcher keeps its socket and the plan; its program and report close with the exec.
[[noreturn]] void become_launcher(const ZoneChild& child) {
  ActContext context;
  context.report = child.report;
  context.placed[0] = {child.socket, plan::kLauncherSocket, false};
  context.placed[1] = {child.plan, plan::kLauncherPlan, false};
  context.placed[2] = {child.program, kProgram, true};
  context.placed[3] = {child.report, kReport, true};
  context.placed_count = 4;
  isolation::RawAction place;
  place.op = isolation::Op::place_descriptors;
  place.a = kReport + 1;
  place.step = Step::launcher_start;
  setsid();
  const int error = act(place, &context);
  if (error != 0) give_up(context.report, Step::launcher_start, error);
  execute("launcher", kProgram, context.report);
}

}  // namespace

void become_anchor(const ZoneChild& child) {
  ActContext context;
  context.report = child.report;
  context.fail_step = child.fail_step;
  context.placed[0] = {child.lifeline, plan::kAnchorLifeline, false};
  context.placed[1] = {child.program, kProgram - 1, true};
  context.placed[2] = {child.report, kReport - 1, true};
  context.placed_count = 3;
  context.null_stdin = true;
  context.null_output = true;
  ActReport report;
  if (!isolation::act_all(child.actions, child.actions_size, &context, &report)) {
    send_report(context.report, report, -1);
    _exit(70);
  }
  execute("anchor", kProgram - 1, context.report);
}

void become_launcher_maker(const ZoneChild& child) {
  ActContext context;
  context.report = child.report;
  // The three standard descriptors become /dev/null while the host's can be opened.
  context.null_stdin = true;
  context.null_output = true;
  isolation::RawAction place;
  place.op = isolation::Op::place_descriptors;
  place.a = 1 << 20;  // closes nothing: the clone does
  int error = act(place, &context);
  if (error != 0) give_up(child.report, Step::launcher_start, error);
  constexpr int kZone = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
                        CLONE_NEWNET | CLONE_NEWCGROUP;
  error = isolation::enter_namespaces(child.anchor, kZone);
  if (error != 0) give_up(child.report, Step::launcher_start, error);
  context.fail_step = child.fail_step;
  isolation::RawAction root;
  root.op = isolation::Op::set_identity;
  root.step = Step::launcher_start;
  error = act(root, &context);
  if (error != 0) give_up(child.report, Step::launcher_start, error);
  const isolation::CloneResult clone = isolation::clone_process(CLONE_PARENT);
  if (clone.pid == 0) become_launcher(child);
  if (clone.pid < 0) give_up(child.report, Step::launcher_start, clone.sys_errno);
  send_report(child.report, ActReport{}, clone.pidfd);
  _exit(0);
}

}  // namespace hutch::warden
