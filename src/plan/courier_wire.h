// The bytes between the engine and a courier: the short-lived process that writes files into a
// sandbox or reads them out of it, under the program's uid, inside its namespaces and its cgroup.
// Stream socket, little-endian, packed by hand. What comes from the courier is hostile: it ran
// beside the program. The engine checks every length against the limits it sent.
//
// In:   engine -> courier   u32 kMagicIn, u32 count, then for each file:
//                           u32 path_bytes, u64 size, path, data
//       courier -> engine   one Verdict
// Out:  engine -> courier   u32 kMagicOut, u64 file_bytes, u64 files_bytes, u32 files_count,
//                           u32 manifest count, then for each file that was sent in:
//                           u32 path_bytes, u64 size, 32 bytes BLAKE2b-256 of its data, path
//       courier -> engine   records, in path order: u8 kind, u8 reason, u32 path_bytes, u64 size,
//                           path, and for kFile `size` bytes of data; the last is kEnd, whose
//                           size is the true number of omitted entries.
#pragma once

#include <cstdint>

namespace hutch::plan {

constexpr std::uint32_t kMagicIn = 0x4855'4931;
constexpr std::uint32_t kMagicOut = 0x4855'4f31;
constexpr std::uint32_t kPathBytesMax = 4096;
constexpr std::uint32_t kDigestBytes = 32;

enum class CourierVerdict : std::uint32_t {
  ok = 0,
  no_space = 1,     // the files do not fit: blocks
  no_inodes = 2,    // the files do not fit: inodes
  bad_path = 3,     // a path that the engine should never have sent
  io = 4,           // see sys_errno
  bad_message = 5,  // the stream did not parse, or ended early
};

struct Verdict {
  CourierVerdict verdict = CourierVerdict::ok;
  std::int32_t sys_errno = 0;
  std::uint32_t file_index = 0;
};

enum class RecordKind : std::uint8_t { file = 1, omitted = 2, unchanged = 3, end = 4 };

// The same order as model::OmitReason.
enum class RecordReason : std::uint8_t {
  too_large = 0,
  total = 1,
  count = 2,
  not_regular = 3,
  unreadable = 4,
  name = 5,
};

}  // namespace hutch::plan
