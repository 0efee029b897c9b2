// One sandbox as the warden holds it: every kernel thing of it has its owner here. A resource.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "isolation/cgroup.h"
#include "warden/protocol.h"

namespace hutch::warden {

enum class Phase {
  init_cloning,     // the launcher makes its init
  init_setup,       // init carries its actions out
  program_cloning,  // the launcher makes its program
  program_setup,    // the program carries its actions out, up to its exec
  running,          // the program lives: waiting for code, or armed
  ended,            // the program was reaped
};

// A process that the warden is the parent of.
struct Child {
  Fd pidfd;
  pid_t pid = -1;  // for the cgroup and the log only: every signal and wait goes by the pidfd
  Fd report;       // SEQPACKET: go, reports, and for init its lifeline

  bool alive() const { return static_cast<bool>(pidfd); }
};

struct Failure {
  Step step = Step::none;
  int sys_errno = 0;
};

struct Sandbox {
  std::uint64_t handle = 0;
  std::uint32_t slot = 0;
  Phase phase = Phase::init_cloning;
  std::unique_ptr<isolation::Cgroup> cgroup;
  Fd memory_kills;  // readable when the out-of-memory killer may have been at work
  Child init;
  Child program;
  Child courier;
  Fd work;  // init's working directory: only ever asked for numbers, never for names
  std::int64_t work_size_empty = 0;
  // The server's ends, until they are handed over.
  Fd code;
  Fd out;
  Fd err;
  Fd stream;

  bool created_told = false;
  bool executed = false;  // the program's report socket has closed: its exec worked
  bool closing = false;   // being torn down
  bool failed = false;    // tell `failed` at the end instead of `destroyed`
  bool quarantined = false;
  std::uint32_t pending_launches = 0;  // requests at the launcher that still come back
  Failure failure;
  std::uint32_t flags = 0;  // ReportFlag
  Report ended;             // kept until the end of the program is told
  std::vector<std::pair<Step, std::uint32_t>> timings;

  bool armed = false;
  Nanos armed_at{0};
  std::uint64_t cpu_us_before = 0;      // of its control group when it was armed
  std::uint64_t own_cpu_us_before = 0;  // the same of its process, where no group counts
  Nanos deadline{0};                    // 0: none
  Nanos kill_at{0};                     // 0: none; the signal that cannot be refused
  Nanos courier_deadline{0};
  Nanos memory_check_at{0};  // 0: none; the next look at the counter of memory kills
  std::uint32_t memory_checks_left = 0;
  Nanos close_started{0};
  Nanos retry_at{0};  // 0: none; the next try to remove the cgroup
};

}  // namespace hutch::warden
