// The privileged half of a running Hutch: takes requests of the closed vocabulary, makes, watches
// and ends sandboxes, and reports. Single-threaded, one event loop; it parses nothing but
// fixed-size messages. It is the parent of every init, program and courier, so the exit status it
// reports is the one that the kernel gave to the real parent.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "isolation/cgroup.h"
#include "warden/launcher_link.h"
#include "warden/options.h"
#include "warden/protocol.h"
#include "warden/sandbox.h"
#include "warden/zone.h"

namespace hutch::warden {

// What an event of the loop is about.
enum class Source : std::uint64_t {
  init_report,
  init_end,
  program_report,
  program_end,
  courier_report,
  courier_end,
  memory_event,
  // Of no sandbox:
  server,
  launcher,
  launcher_end,
  anchor_end,
  child_signal,
};

class Warden {
 public:
  struct Parts {
    const WardenOptions& options;
    const plan::Plan& plan;
    const plan::PlanHost& host;
    isolation::CgroupTree& cgroups;
    Zone& zone;
    std::uint32_t first_slot_id;  // of the zone: UidRange::slots
    Fd server;
    const Clock& clock;
    Log& log;
  };
  explicit Warden(Parts parts);

  // Serves until the server's socket closes or the sandbox side breaks; then ends every sandbox.
  // The process's exit status: 0, or 70 when the sandbox side broke.
  int run();

 private:
  using Map = std::map<std::uint64_t, std::unique_ptr<Sandbox>>;

  // Loop (warden.cc).
  Status watch(int fd, std::uint64_t handle, Source source, std::uint32_t events);
  void dispatch(std::uint64_t key);
  void dispatch_sandbox(Sandbox* sandbox, Source source);
  int wait_ms() const;
  void on_timers();
  void on_server();
  void handle_request(const Request& request);
  void reap_strangers();
  bool is_ours(pid_t pid) const;
  void on_zone_lost();
  void stop_serving(int status);
  bool finished() const { return stopping_ && sandboxes_.empty(); }

  // Making (warden_make.cc).
  void create(const Request& request);
  Status begin(Sandbox* sandbox);
  void on_launcher();
  void on_launched(Sandbox* sandbox, LauncherLink::Answer answer);
  Status adopt(Sandbox* sandbox, Child* child, Fd pidfd, Source end);
  void on_init_report(Sandbox* sandbox);
  Status launch_program(Sandbox* sandbox);
  void on_program_report(Sandbox* sandbox);
  void tell_created(Sandbox* sandbox);
  void start_courier(Sandbox* sandbox, Ask ask);
  Status launch_courier(Sandbox* sandbox, Ask ask);
  void on_courier_report(Sandbox* sandbox);
  plan::LaunchRequest launch_request(const Sandbox& sandbox, plan::LaunchKind kind) const;
  bool fails_here(Step step) const;

  // Running and ending (warden_end.cc).
  void arm(Sandbox* sandbox, std::uint32_t timeout_ms);
  void stop(Sandbox* sandbox);
  void on_program_end(Sandbox* sandbox);
  void on_init_end(Sandbox* sandbox);
  void on_courier_end(Sandbox* sandbox);
  void on_memory_event(Sandbox* sandbox);
  void check_memory(Sandbox* sandbox, Nanos now);
  void on_deadline(Sandbox* sandbox, Nanos now);
  void fail_sandbox(Sandbox* sandbox, Failure failure);
  void close_sandbox(Sandbox* sandbox);
  void advance_close(Sandbox* sandbox);
  void quarantine(Sandbox* sandbox);
  void collect(Sandbox* sandbox, Report* report) const;

  // Telling (warden.cc).
  void tell(const Report& report, std::vector<Fd> fds);
  void flush_outbox();

  Sandbox* find(std::uint64_t handle);
  std::uint32_t free_slot() const;  // slots_max when none is free

  const WardenOptions& options_;
  const plan::Plan& plan_;
  const plan::PlanHost& host_;
  isolation::CgroupTree& cgroups_;
  Zone& zone_;
  const std::uint32_t first_slot_id_;
  LauncherLink launcher_;
  Fd server_;
  const Clock& clock_;
  Log& log_;
  Fd epoll_;
  Fd signals_;
  Map sandboxes_;
  std::vector<std::uint64_t> finished_;  // handles to erase after the current event
  struct Outgoing {
    Report report;
    std::vector<Fd> fds;
  };
  std::deque<Outgoing> outbox_;
  pid_t launcher_pid_ = -1;
  bool stopping_ = false;
  int status_ = 0;
  std::uint64_t last_handle_ = 0;
};

}  // namespace hutch::warden
