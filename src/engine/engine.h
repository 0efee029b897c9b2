// What the product needs from whatever makes sandboxes. Implementations: native_engine (speaks to
// the warden) and fake_engine (tests). All calls and callbacks happen on the one server thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "engine/live_output.h"
#include "model/limits.h"
#include "model/shot.h"

namespace hutch::engine {

// Names one live sandbox inside one engine; never reused.
enum class SandboxHandle : std::uint64_t {};

struct StepTiming {
  Step step = Step::none;
  std::uint32_t micros = 0;
};

// A warm sandbox: made, its interpreter up with its libraries, waiting for code.
struct Created {
  SandboxHandle handle{};
  std::vector<StepTiming> timings;  // one for each setup step, in order
};

class Engine {
 public:
  virtual ~Engine() = default;

  // Makes one warm sandbox. `done` is called exactly once, never from inside create().
  // Fails as setup_failed (step, errno), sandbox_lost, warden_gone, busy (no slot is free).
  virtual void create(std::function<void(Result<Created>)> done) = 0;

  // Runs `spec` in a warm sandbox and uses it up: whatever happens, the sandbox is destroyed, after
  // `done`, which is called exactly once, never from inside run(). An Error means that nothing can
  // be said about the program: rejected (the files do not fit, message is the sentence for the
  // caller), unreadable_reply, sandbox_lost, warden_gone. sandbox_lost with Step::run_start means
  // that the program never reached the sandbox, so the same run may be tried in another one; the
  // spec is shared for that reason.
  // With `live` the output goes there while it comes, all of it: the result then holds only how
  // much it was, and live->begin() is called before `done` unless the program never reached the
  // sandbox. Without (null) the result holds the output.
  virtual void run(SandboxHandle handle, std::shared_ptr<const model::ShotSpec> spec,
                   std::shared_ptr<LiveOutput> live,
                   std::function<void(Result<model::ShotResult>)> done) = 0;

  // Ends a run early; its `done` then comes with cause `cancelled` (unless it had just ended),
  // never from inside cancel().
  virtual void cancel(SandboxHandle handle) = 0;

  // Destroys a warm sandbox that no run has used up.
  virtual void destroy(SandboxHandle handle) = 0;

  // Called when a warm sandbox dies by itself; its handle is dead from then on.
  virtual void on_warm_lost(std::function<void(SandboxHandle)> callback) = 0;

  // Called once if the engine can never work again (the privileged side is gone).
  virtual void on_fatal(std::function<void(Error)> callback) = 0;

  // From here on what comes back is capped by these: stream_bytes for sandboxes made from now on,
  // file_bytes, files_bytes and files_count for files read from now on. The others are not the
  // engine's to change.
  virtual void set_answer_limits(const model::Limits& limits) = 0;

  // Sandboxes that still hold a slot: being made, warm, running, being torn down, quarantined.
  virtual std::uint32_t live() const = 0;
  virtual std::uint32_t quarantined() const = 0;
};

}  // namespace hutch::engine
