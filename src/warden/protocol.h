// What the unprivileged server may ask of the warden, and what the warden answers: fixed-size
// messages over one SOCK_SEQPACKET pair, descriptors beside them. The vocabulary is closed on
// purpose: no path of the host, no mount, no capability, no filter, no uid can be said in it, so a
// server that is taken over gains sandboxes and nothing else. Both ends are the same binary, so the
// layout needs no versions; sizes are still checked, and anything odd ends the connection.
#pragma once

#include <array>
#include <cstdint>

#include "base/step.h"

namespace hutch::warden {

enum class Ask : std::uint32_t {
  create = 1,    // make a sandbox with a waiting program: image, profile
  arm = 2,       // the deadline of the program starts now: timeout_ms
  stop = 3,      // kill the program now (the caller has left)
  files_in = 4,  // start a courier that writes files; the program must be waiting, not armed
  files_out =
      5,        // start a courier that kills what is left, then reads files; the program has ended
  destroy = 6,  // tear the sandbox down, whatever state it is in
};

struct Request {
  Ask ask{};
  std::uint32_t profile = 0;     // create: 0 is the only one now
  std::uint64_t handle = 0;      // chosen by the server, never reused, never 0
  std::uint32_t timeout_ms = 0;  // arm: 1 .. 86,400,000
  std::uint32_t reserved = 0;
  std::array<std::uint8_t, 32> image{};  // create: SHA-256 of the image
};

enum class Tell : std::uint32_t {
  created = 1,         // 3 descriptors: code socket (stream), stdout pipe, stderr pipe; timings
  failed = 2,          // create did not work: step, sys_errno; nothing is left of it
  ended = 3,           // the program was reaped: the fields below. Once a sandbox
  courier = 4,         // 1 descriptor: the server's end of the courier's stream socket
  courier_failed = 5,  // the courier could not be started: step, sys_errno
  courier_ended = 6,   // the courier was reaped: by_signal, status
  destroyed = 7,       // nothing is left of it; with kQuarantined: told once more when that is over
};

enum ReportFlag : std::uint32_t {
  kTimedOut = 1U << 0U,       // the warden killed it at its deadline
  kStopped = 1U << 1U,        // the warden killed it because of `stop` or `destroy`
  kMemoryKilled = 1U << 2U,   // the kernel's out-of-memory killer was at work in this sandbox
  kProcessDenied = 1U << 3U,  // the kernel refused a process or thread at the limit
  kDiskFull = 1U << 4U,       // no free block in the scratch file system at the end
  kInodesFull = 1U << 5U,     // no free inode there at the end
  kWorkEmpty = 1U << 6U,      // the working directory has no entry at all
  kQuarantined = 1U << 7U,    // destroyed: something would not die; the slot is not reused yet
};

struct Report {
  Tell tell{};
  std::uint32_t flags = 0;
  std::uint64_t handle = 0;
  Step step = Step::none;
  std::uint16_t by_signal = 0;
  std::int32_t sys_errno = 0;
  std::int32_t status = 0;
  std::uint32_t pad = 0;
  std::uint64_t duration_us = 0;        // from arm to the end; 0 when never armed
  std::uint64_t memory_peak_bytes = 0;  // 0: not known
  std::uint64_t cpu_us = 0;             // of the whole sandbox since arm
  // created: microseconds of each step in the order of the plan; 0 beyond the last.
  std::array<std::uint32_t, 64> timings{};
  std::array<Step, 64> timed_steps{};
};

static_assert(sizeof(Request) == 56);
static_assert(sizeof(Report) == 440);

}  // namespace hutch::warden
