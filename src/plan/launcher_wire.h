// Between the warden and its launcher: SEQPACKET messages with descriptors, and the block that
// holds everything the launcher ever carries out. The launcher decides nothing: it picks the list
// that the request names.
#pragma once

#include <cstdint>

#include "base/step.h"
#include "isolation/act.h"

namespace hutch::plan {

enum class LaunchKind : std::uint32_t { init = 1, program = 2, courier_in = 3, courier_out = 4 };

// Descriptors beside it: init: report. program: report, init's pidfd, code, stdout, stderr.
// courier: report, init's pidfd, stream.
struct LaunchRequest {
  LaunchKind kind{};
  std::uint32_t init_id = 0;     // uid and gid, inside the zone, of the sandbox's root
  std::uint32_t program_id = 0;  // the same of the sandbox's user 1000
  Step fail_step = Step::none;   // failpoint; only builds with HUTCH_TESTING look at it
  std::uint16_t pad = 0;
  std::uint64_t cpu_mask[isolation::kCpuWords]{};
};

// One descriptor beside it when failed_step is none: the pidfd of the new process, which is a child
// of the warden.
struct LaunchReply {
  Step failed_step = Step::none;
  std::uint16_t pad = 0;
  std::int32_t sys_errno = 0;
  std::uint32_t network_us = 0;  // init: a network namespace of its own, lo up
  std::uint32_t clone_us = 0;
};

constexpr std::uint32_t kPlanMagic = 0x4855'504c;

// The block (a sealed memory file, descriptor 4 of the launcher): this header, then the parts in
// this order, each padded to 8 bytes.
struct PlanBlock {
  std::uint32_t magic = kPlanMagic;
  std::uint32_t init_bytes = 0;     // actions of init
  std::uint32_t program_bytes = 0;  // actions of the program, up to its exec
  std::uint32_t execute_bytes = 0;  // the exec
  std::uint32_t courier_bytes = 0;  // actions of a courier
  std::uint32_t filter_bytes[3]{};  // by FilterKind
  std::uint32_t argv_bytes = 0;     // NUL-terminated strings
  std::uint32_t envp_bytes = 0;
};

// Descriptors of the launcher and the anchor after their exec.
constexpr int kAnchorLifeline = 3;  // pipe: end of file means that the warden is gone
constexpr int kLauncherSocket = 3;
constexpr int kLauncherPlan = 4;

}  // namespace hutch::plan
