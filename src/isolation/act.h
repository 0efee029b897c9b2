// Carries actions out between clone and exec: no allocation, no lock, no log, no decision.
#pragma once

#include <linux/filter.h>
#include <time.h>

#include <cstddef>
#include <cstdint>

#include "isolation/raw_action.h"

namespace hutch::isolation {

constexpr int kPlacedMax = 6;
constexpr int kCpuWords = 16;  // up to 1024 processors

constexpr int kKeptDirectory = -2;  // Placement::from: what open_directory has left

struct Placement {
  int from = -1;
  int to = -1;
  bool close_on_exec = false;
};

// Everything that a list of actions may need and does not carry itself. Descriptors are borrowed.
struct ActContext {
  int report = -1;      // SEQPACKET to the warden: await_go reads from it
  int init_pidfd = -1;  // join_namespaces
  int kept = -1;        // open_directory leaves its descriptor here
  Placement placed[kPlacedMax]{};
  int placed_count = 0;
  bool null_stdin = false;   // /dev/null becomes 0 as well
  bool null_output = false;  // and 1 and 2
  bool clears = false;       // kill_others: whether this process is there to end the others
  std::uint64_t cpu_mask[kCpuWords]{};
  sock_fprog filters[3]{};  // by FilterKind
  char* const* argv = nullptr;
  char* const* envp = nullptr;
  Step fail_step = Step::none;  // failpoint; only builds with HUTCH_TESTING look at it
};

// SIGKILL to everybody in the caller's pid namespace but its init, until nobody is left. 0,
// ETIMEDOUT when somebody would not die, or errno.
int kill_others();

// Microseconds since *mark, which moves to now.
std::uint32_t micros_since(timespec* mark);

// 0, or the errno of the call that failed.
int act(const RawAction& action, ActContext* context);

// What a process reports about the actions it carried out: one SEQPACKET message.
constexpr int kTimingsMax = 48;
struct ActReport {
  Step failed_step = Step::none;  // none: everything worked
  std::uint16_t count = 0;        // timings that are filled in
  std::int32_t sys_errno = 0;
  std::uint32_t micros[kTimingsMax]{};
  Step steps[kTimingsMax]{};
};

// Carries the whole block out, in order, until one action fails. Returns false then; `report` says
// which and why either way. Consecutive actions of one step share one timing.
bool act_all(const char* block, std::size_t size, ActContext* context, ActReport* report);

}  // namespace hutch::isolation
