// What the warden is told once, at its start, by the process that is still root. Values.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/step.h"
#include "plan/plan.h"

namespace hutch::warden {

struct WardenOptions {
  std::string state_dir;  // exists, is locked by the caller and writable
  std::string instance;   // 8 hex digits that stay the same for one state directory
  plan::PlanSpec spec;
  std::string image_path;
  bool image_is_file = true;
  std::array<std::uint8_t, 32> image_digest{};
  std::uint32_t slots_max = 64;  // sandboxes at once, 1 .. 4096
  std::uint32_t server_uid = 0;  // for the ledger only
  // Whether the caller is root of a user namespace of an ordinary user (cli/user_namespace.h) and
  // not of the host: device nodes are then the host's, bound, and ids the user's subordinate ones.
  bool rootless = false;
  // Limits ("memory", "processes", "cpus") that the operator does without where this host cannot
  // hold them; what it can hold is held.
  std::vector<std::string> waived;
  LogLevel log_level = LogLevel::info;
  Step fail_step = Step::none;  // failpoint; only builds with HUTCH_TESTING look at it
};

}  // namespace hutch::warden
