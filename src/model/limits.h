// The limits of one sandbox, all enforced by the kernel or by the engine. Values.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace hutch::model {

struct Limits {
  std::uint64_t memory_bytes = 512_MiB;  // swap is 0
  double cpus = 1.0;
  std::uint32_t processes = 128;  // threads count
  std::uint32_t open_files = 1024;
  std::uint64_t disk_bytes = 256_MiB;  // working directory, HOME and /tmp together
  std::uint64_t inodes = 65536;        // the same
  std::uint64_t shm_bytes = 64_MiB;    // /dev/shm
  std::uint64_t stream_bytes = 1_MiB;  // kept of stdout, and of stderr
  std::uint64_t file_bytes = 4_MiB;    // one returned file
  std::uint64_t files_bytes = 16_MiB;  // all returned files of a run
  std::uint32_t files_count = 1000;    // returned files of a run, and named omissions
};

}  // namespace hutch::model
