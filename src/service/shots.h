// One-shot runs: takes a warm sandbox from the pool (or waits in line for one), runs one program in
// it, and gives the answer; the sandbox is used up by that. Owns the pool and its timers. Never
// speaks a vendor's words, never logs: what an operator should read goes to the observers.
//
// Everything here runs on the one thread of the io_context that is given at construction.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "engine/engine.h"
#include "model/shot.h"
#include "service/host_memory.h"
#include "service/pool_decide.h"

namespace hutch::service {

struct ShotAnswer {
  std::string sandbox_id;       // "sandbox-" and 10 characters of lowercase base32, new each time
  model::ShotResult result;     // its cause is never `cancelled` or `lost`: those are Errors here
  std::uint64_t waited_us = 0;  // from the arrival to the moment a sandbox was handed out
};

// A run that somebody follows while it goes on. Made by the caller of Shots::run(), which takes the
// output as it comes.
struct LiveShot {
  std::string sandbox_id;  // that of the answer; from the first step of Shots::run() on
  engine::LiveOutput output;
};

// Says once that nobody waits for a run any more. Made by the caller of Shots::run(), and kept by
// it for as long as it may want to cancel.
class Cancellation {
 public:
  // Safe to call again, before the run has started and after it has ended.
  void cancel();
  bool cancelled() const { return cancelled_; }
  // One callback at a time; called at once when the cancellation has already happened. An empty
  // function takes the callback away.
  void on_cancel(std::function<void()> callback);

 private:
  bool cancelled_ = false;
  std::function<void()> callback_;
};

// The pool as its readers see it.
struct PoolNumbers {
  std::uint32_t warm = 0;           // sandboxes ready and handed to nobody
  std::uint32_t target = 0;         // how many of those the pool keeps
  std::uint32_t in_flight = 0;      // executions running: handed out, and not yet answered
  std::uint64_t created_total = 0;  // sandboxes that became ready since the start; never falls
};

// How long one step of making sandboxes took, all of them together.
struct StepTotal {
  std::uint64_t count = 0;
  std::uint64_t micros = 0;
};

// Counters since the start, for metrics.
struct ShotStats {
  std::map<Step, StepTotal> setup;              // of sandboxes that became ready
  std::map<model::Cause, std::uint64_t> ended;  // runs that came back with an outcome
  std::map<ErrorCode, std::uint64_t> failed;    // runs that came back with an Error, by its code
  std::uint64_t create_failures_total = 0;
  std::uint64_t warm_lost_total = 0;
  std::uint32_t creating = 0;     // sandboxes being made now
  std::uint32_t waiting = 0;      // requests in the line now
  std::uint32_t live = 0;         // sandboxes that hold a slot of the engine, in any state
  std::uint32_t quarantined = 0;  // sandboxes that would not go away
};

// What happens in the background, for the log and the metrics. Each may be empty.
struct ShotsObservers {
  std::function<void(const Error&, std::uint32_t failures_in_a_row)> create_failed;
  std::function<void()> warm_lost;
  std::function<void(const Error&)> fatal;  // once; from then on every run fails as warden_gone
};

struct ShotsOptions {
  PoolOptions pool;
  std::uint32_t drain_ms = 65'000;  // how long drain() lets runs go on before it ends them
};

class Shots {
 public:
  // The references must outlive this object. `host_memory` is asked each time a run may start.
  Shots(boost::asio::io_context& io, engine::Engine& engine, const Clock& clock, Random& random,
        std::function<HostMemory()> host_memory, ShotsOptions options,
        ShotsObservers observers = {});
  ~Shots();
  Shots(const Shots&) = delete;
  Shots& operator=(const Shots&) = delete;

  // Starts to fill the pool. `filled` is called once: without an error when the pool has its target
  // of warm sandboxes for the first time, or with the error of the third failure in a row when
  // that comes first. The pool goes on trying after such an error. Call it once.
  void start(std::function<void(Status)> filled);

  // One run. Fails as
  //   busy       no sandbox or no memory within PoolOptions::wait, or the line is full
  //   draining   the server is stopping, or stopped before the run had ended
  //   cancelled  `cancellation` came first; a place in the line is freed, a running program ended
  //   rejected, unreadable_reply, sandbox_lost, warden_gone  as Engine::run() says
  // The message of busy is a whole sentence; doors that promise another text have their own.
  // `cancellation` may be empty. `spec` has usable paths without collisions (model/files.h).
  // With `live` the output goes there, all of it, and none of it is in the answer; a run that fails
  // as busy or rejected never begins there.
  boost::asio::awaitable<Result<ShotAnswer>> run(model::ShotSpec spec,
                                                 std::shared_ptr<Cancellation> cancellation,
                                                 std::shared_ptr<LiveShot> live = nullptr);

  PoolNumbers pool_numbers() const;
  ShotStats stats() const;

  // Whether a request that comes now can be expected to be served: the pool was full once, the
  // engine works, nothing is draining, and creation does not keep failing over an empty pool.
  bool ready() const;

  // From here on these numbers hold: too many warm sandboxes are given up, too few are made. Runs
  // in flight go on, and runs in the line stay there whatever its new length.
  void set_pool(const PoolOptions& options);

  // Refuses new runs and those in the line, lets running ones finish for at most drain_ms, ends
  // the others, gives the warm sandboxes up. `drained` is called once no run is left, never from
  // inside drain(). A second call is the same as stop_now().
  void drain(std::function<void()> drained);
  // Ends every run now; `drained` follows as soon as their answers are out.
  void stop_now();

 private:
  class Core;
  // Callbacks of the engine and of timers hold it weakly, so they may come after this object's end.
  std::shared_ptr<Core> core_;
};

}  // namespace hutch::service
