// Between this door's shapes and the product's own. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "api/crusoe/wire.h"
#include "base/result.h"
#include "model/shot.h"
#include "service/shots.h"

namespace hutch::api::crusoe {

// Fails as rejected, with the sentence for the caller, when a path cannot be used or two files are
// in each other's way: no sandbox is taken for that.
Result<model::ShotSpec> to_shot_spec(ExecuteRequest request);

// What an answer says beyond the five keys that it always has.
enum class Report {
  informative,  // a key only where it carries information
  full,         // all keys
};

// `timeout_s` is the run's. The outcome's cause is neither cancelled nor lost.
//   stdout, stderr  as the program wrote them, ill-formed UTF-8 replaced by U+FFFD. Where a stream
//                   was longer than its cap, dropped_line() stands on a line of its own between the
//                   first and the last part, both cut between characters.
//   stderr          then has a line of ours: "timed out after <N>s" (without a line end), or
//                   "memory limit of <N> bytes (<M> MiB) exceeded".
//   exit_code       the program's; 128 and the signal's number; -1 only for a timeout; 137 for
//   memory
ExecuteAnswer to_answer(service::ShotAnswer answer, std::uint32_t timeout_s, Report report);

PoolAnswer to_answer(const service::PoolNumbers& numbers);

// "[hutch: 123456 bytes dropped here]": bytes of the program's own output that no key holds.
std::string dropped_line(std::uint64_t bytes);

// "SIGKILL"; "SIG64" for a number that has no name.
std::string signal_name(int signal);

}  // namespace hutch::api::crusoe
