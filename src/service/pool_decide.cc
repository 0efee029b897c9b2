#include "service/pool_decide.h"

#include <algorithm>

namespace hutch::service {
namespace {

using engine::SandboxHandle;

// Everything one call of decide() works on.
struct Scene {
  PoolState& state;
  const PoolOptions& options;
  const PoolFacts& facts;
  PoolDecision decision;

  void act(PoolAction action) { decision.actions.push_back(std::move(action)); }
  void wake_by(Nanos at) {
    if (!decision.wake_at || at < *decision.wake_at) decision.wake_at = at;
  }
};

// Between half and all of the doubled delay.
Nanos backoff(const Scene& scene, std::uint32_t in_a_row) {
  const std::uint32_t doublings = std::min(in_a_row - 1, 20U);
  const Nanos full = std::min(scene.options.backoff_max,
                              scene.options.backoff_first * (std::int64_t{1} << doublings));
  return full / 2 + full / 2 * std::min(scene.facts.jitter_permille, 999U) / 1000;
}

void hold_back_creation(Scene& scene, Nanos by) {
  scene.state.create_not_before = std::max(scene.state.create_not_before, scene.facts.now + by);
}

void refuse_line(Scene& scene, ErrorCode code) {
  for (const Waiter& waiter : scene.state.line) scene.act(Refuse{waiter.id, code});
  scene.state.line.clear();
}

void discard_warm(Scene& scene) {
  for (const SandboxHandle sandbox : scene.state.warm) scene.act(Discard{sandbox});
  scene.state.warm.clear();
}

ErrorCode refusal_of(PoolPhase phase) {
  return phase == PoolPhase::failed ? ErrorCode::warden_gone : ErrorCode::draining;
}

struct Apply {
  Scene& scene;
  PoolState& state = scene.state;

  void operator()(const Started&) const {}
  void operator()(const Tick&) const {}

  void operator()(const Arrived& event) const {
    if (state.phase != PoolPhase::serving) {
      scene.act(Refuse{event.waiter, refusal_of(state.phase)});
    } else if (state.line.size() >= scene.options.line_max) {
      scene.act(Refuse{event.waiter, ErrorCode::busy});
    } else {
      state.line.push_back(Waiter{event.waiter, scene.facts.now});
    }
  }

  void operator()(const Left& event) const {
    std::erase_if(state.line, [&](const Waiter& waiter) { return waiter.id == event.waiter; });
  }

  void operator()(const SandboxReady& event) const {
    state.creating -= 1;
    state.created_total += 1;
    state.failures_in_a_row = 0;
    state.warm.push_back(event.sandbox);
    if (state.phase != PoolPhase::serving) discard_warm(scene);
    if (state.warm.size() >= scene.options.target) state.filled_once = true;
  }

  void operator()(const CreateFailed& event) const {
    state.creating -= 1;
    if (event.code == ErrorCode::busy) {
      // Sandboxes that are being torn down still hold every slot: that passes by itself.
      hold_back_creation(scene, scene.options.backoff_first);
      return;
    }
    state.failures_in_a_row += 1;
    hold_back_creation(scene, backoff(scene, state.failures_in_a_row));
  }

  void operator()(const WarmLost& event) const {
    if (std::erase(state.warm, event.sandbox) == 0) return;
    // Sandboxes that start well and then die would otherwise be made again without an end.
    state.losses_in_a_row += 1;
    hold_back_creation(scene, backoff(scene, state.losses_in_a_row));
  }

  void operator()(const RunEnded&) const {
    state.running -= 1;
    state.losses_in_a_row = 0;
  }

  void operator()(const RunNeverStarted& event) const {
    state.running -= 1;
    if (state.phase != PoolPhase::serving) {
      scene.act(Refuse{event.waiter.id, refusal_of(state.phase)});
      return;
    }
    state.losses_in_a_row += 1;
    hold_back_creation(scene, backoff(scene, state.losses_in_a_row));
    // It was first in the line before, so it is older than all that wait now.
    state.line.push_front(event.waiter);
  }

  void operator()(const DrainAsked&) const {
    if (state.phase != PoolPhase::serving) return;
    state.phase = PoolPhase::draining;
    refuse_line(scene, ErrorCode::draining);
    discard_warm(scene);
  }

  void operator()(const EngineGone&) const {
    state.phase = PoolPhase::failed;
    refuse_line(scene, ErrorCode::warden_gone);
    state.warm.clear();  // they are gone with the engine
  }
};

// Before anything is handed out: nobody is served later than promised.
void refuse_the_late(Scene& scene) {
  auto& line = scene.state.line;
  while (!line.empty() && line.front().since + scene.options.wait <= scene.facts.now) {
    scene.act(Refuse{line.front().id, ErrorCode::busy});
    line.pop_front();
  }
}

void hand_out(Scene& scene) {
  PoolState& state = scene.state;
  HostMemory memory = scene.facts.memory;
  while (!state.line.empty() && !state.warm.empty() && state.running < scene.options.runs_max) {
    if (!memory_fits(scene.options, memory, state.running)) {
      scene.wake_by(scene.facts.now + scene.options.memory_poll);
      return;
    }
    scene.act(HandOut{state.line.front(), state.warm.front()});
    state.line.pop_front();
    state.warm.pop_front();
    state.running += 1;
    // The kernel's figure does not know yet what the run just started will take.
    memory.available_bytes -= std::min(memory.available_bytes, scene.options.run_memory_bytes);
  }
}

// How many are to be warm or on the way. A pool that keeps none makes one when somebody waits.
std::size_t goal(const Scene& scene) {
  return std::max<std::size_t>(scene.options.target, scene.state.line.empty() ? 0 : 1);
}

// More than the goal are warm only when the target has become smaller. The youngest go.
void give_surplus_up(Scene& scene) {
  auto& warm = scene.state.warm;
  while (warm.size() > goal(scene)) {
    scene.act(Discard{warm.back()});
    warm.pop_back();
  }
}

void refill(Scene& scene) {
  PoolState& state = scene.state;
  // While creating fails, one attempt at a time: several would only fail together.
  const std::uint32_t parallel =
      state.failures_in_a_row > 0 ? 1 : scene.options.creates_parallel_max;
  const auto wanted = [&] {
    return state.warm.size() + state.creating < goal(scene) &&
           state.warm.size() + state.creating < scene.options.ceiling && state.creating < parallel;
  };
  if (wanted() && scene.facts.now < state.create_not_before) {
    scene.wake_by(state.create_not_before);
    return;
  }
  while (wanted()) {
    scene.act(StartCreate{});
    state.creating += 1;
  }
}

}  // namespace

bool memory_fits(const PoolOptions& options, const HostMemory& memory, std::uint32_t running) {
  const std::uint64_t reserve = memory.total_bytes / 100 * options.memory_reserve_percent;
  const std::uint64_t promised = options.run_memory_bytes * (std::uint64_t{running} + 1);
  return promised + reserve <= memory.total_bytes &&
         options.run_memory_bytes + reserve <= memory.available_bytes;
}

PoolDecision decide(PoolState& state, const PoolOptions& options, const PoolFacts& facts,
                    const PoolEvent& event) {
  Scene scene{state, options, facts, {}};
  std::visit(Apply{scene}, event);
  refuse_the_late(scene);
  if (state.phase == PoolPhase::serving) {
    // A target that was lowered is reached without another sandbox.
    const std::size_t target = options.target;
    if (target > 0 && state.warm.size() >= target) state.filled_once = true;
    hand_out(scene);
    give_surplus_up(scene);
    refill(scene);
  }
  if (!state.line.empty()) scene.wake_by(state.line.front().since + options.wait);
  return std::move(scene.decision);
}

}  // namespace hutch::service
