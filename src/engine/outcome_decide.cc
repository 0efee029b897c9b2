#include "engine/outcome_decide.h"

namespace hutch::engine {
namespace {

using model::Cause;

struct Verdict {
  Cause cause{};
  std::optional<std::uint64_t> limit;
};

Verdict judge(const warden::Report& ended, const model::Limits& limits, std::uint32_t timeout_s) {
  const auto flagged = [&](warden::ReportFlag flag) { return (ended.flags & flag) != 0; };
  const bool by_signal = ended.by_signal != 0;
  const bool badly = by_signal || ended.status != 0;
  if (flagged(warden::kTimedOut)) return {Cause::timeout, timeout_s};
  if (flagged(warden::kStopped)) return {Cause::cancelled, {}};
  if (badly && flagged(warden::kMemoryKilled)) return {Cause::memory, limits.memory_bytes};
  if (badly && flagged(warden::kProcessDenied)) return {Cause::processes, limits.processes};
  if (badly && flagged(warden::kDiskFull)) return {Cause::disk, limits.disk_bytes};
  if (badly && flagged(warden::kInodesFull)) return {Cause::disk, limits.inodes};
  return {by_signal ? Cause::signaled : Cause::exited, {}};
}

}  // namespace

model::Outcome decide_outcome(const warden::Report& ended, const model::Limits& limits,
                              std::uint32_t timeout_s) {
  const Verdict verdict = judge(ended, limits, timeout_s);
  model::Outcome outcome;
  outcome.cause = verdict.cause;
  outcome.limit = verdict.limit;
  outcome.by_signal = ended.by_signal != 0;
  outcome.status = ended.status;
  outcome.memory_peak_bytes = ended.memory_peak_bytes;
  outcome.cpu_ms = ended.cpu_us / 1000;
  return outcome;
}

}  // namespace hutch::engine
