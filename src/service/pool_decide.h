// What the pool of warm sandboxes does, decided as plain data: a state and an event give a list of
// actions. No clock, no randomness, no engine and no timer in here: time, memory and jitter come in
// as values, so the same events always give the same actions.
//
// The exact meaning of the numbers:
//   warm           sandboxes that are ready and handed to nobody
//   target         how many of those are kept; every one taken or lost is replaced
//   ceiling        the most that are warm or being made at one time
//   running        handed out and not yet answered ("in flight")
//   created_total  sandboxes that became ready since the start. A sandbox serves one run and is
//                  replaced, so with a full pool before and after, it rises by one for each run;
//                  a sandbox that dies while warm costs one more
//
// Requests wait in one line, in the order of arrival. The first of the line gets the next sandbox
// as soon as there are a warm sandbox, a free place among `runs_max`, and memory. Nobody overtakes.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "engine/engine.h"
#include "service/host_memory.h"

namespace hutch::service {

struct PoolOptions {
  std::uint32_t target = 3;   // 0: one is made when a request waits, and none beforehand
  std::uint32_t ceiling = 3;  // at least target
  std::uint32_t runs_max = 32;
  std::uint32_t line_max = 1024;  // more requests than that in the line are refused at once
  std::uint32_t creates_parallel_max = 2;
  Nanos wait = std::chrono::seconds(30);
  Nanos backoff_first = std::chrono::milliseconds(100);  // doubles with each failure in a row
  Nanos backoff_max = std::chrono::seconds(10);
  // While a run waits for memory, how often the host's memory is looked at again.
  Nanos memory_poll = std::chrono::milliseconds(100);
  std::uint64_t run_memory_bytes = 512_MiB;   // the memory limit of one run
  std::uint32_t memory_reserve_percent = 10;  // of the host's memory; never given to runs
};

// Names one request in the line; never reused.
enum class WaiterId : std::uint64_t {};

struct Waiter {
  WaiterId id{};
  Nanos since{};  // when it arrived; it leaves at since + wait at the latest
};

enum class PoolPhase {
  serving,
  draining,  // nothing new starts; what runs, runs on
  failed,    // the engine is gone for good
};

struct PoolState {
  PoolPhase phase = PoolPhase::serving;
  std::deque<engine::SandboxHandle> warm;  // the oldest first, and taken first
  std::uint32_t creating = 0;
  std::deque<Waiter> line;
  std::uint32_t running = 0;
  std::uint64_t created_total = 0;
  std::uint32_t failures_in_a_row = 0;  // creations that failed since the last that worked
  std::uint32_t losses_in_a_row = 0;    // warm sandboxes that died since a run last came back
  Nanos create_not_before{};
  bool filled_once = false;  // warm has reached target at some time
};

struct Started {};
struct Arrived {
  WaiterId waiter{};
};
// A request in the line is given up by its client.
struct Left {
  WaiterId waiter{};
};
struct SandboxReady {
  engine::SandboxHandle sandbox{};
};
struct CreateFailed {
  ErrorCode code{};
};
struct WarmLost {
  engine::SandboxHandle sandbox{};
};
struct RunEnded {};
// The sandbox died before it got the program: the request goes back to the head of the line.
struct RunNeverStarted {
  Waiter waiter;
};
struct Tick {};
struct DrainAsked {};
struct EngineGone {};

using PoolEvent = std::variant<Started, Arrived, Left, SandboxReady, CreateFailed, WarmLost,
                               RunEnded, RunNeverStarted, Tick, DrainAsked, EngineGone>;

// What the world looks like at the moment of the event.
struct PoolFacts {
  Nanos now{};
  HostMemory memory;
  // 0 .. 999, drawn anew for each event: spreads the retries of several servers.
  std::uint32_t jitter_permille = 0;
};

struct StartCreate {};
struct HandOut {
  Waiter waiter;
  engine::SandboxHandle sandbox{};
};
// The request ends without a run: busy, draining or warden_gone.
struct Refuse {
  WaiterId waiter{};
  ErrorCode code{};
};
// A warm sandbox that nobody will need.
struct Discard {
  engine::SandboxHandle sandbox{};
};

using PoolAction = std::variant<StartCreate, HandOut, Refuse, Discard>;

struct PoolDecision {
  std::vector<PoolAction> actions;  // to be carried out in this order
  std::optional<Nanos> wake_at;     // when to send the next Tick, on the monotonic clock
};

// Changes `state` as the event and the actions say, and gives the actions. Deterministic.
PoolDecision decide(PoolState& state, const PoolOptions& options, const PoolFacts& facts,
                    const PoolEvent& event);

// Whether one more run fits: all running ones at their limits beside the reserve of the host's
// memory, and this one beside the reserve in what is really left now.
bool memory_fits(const PoolOptions& options, const HostMemory& memory, std::uint32_t running);

}  // namespace hutch::service
