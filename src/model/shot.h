// One single-use run: what goes in and what comes out. Plain values, no vendor's shape.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/files.h"
#include "model/outcome.h"

namespace hutch::model {

struct ShotSpec {
  std::string code;               // UTF-8 source
  std::vector<std::string> args;  // sys.argv[1:]; without NUL, 128 KiB in all at most
  std::uint32_t timeout_s = 20;
  std::vector<InputFile> files;  // usable paths, no collisions
};

// The bytes of one stream, as far as the cap lets through.
struct StreamText {
  std::string head;               // everything, when nothing was dropped
  std::string tail;               // the last part, when something was dropped
  std::uint64_t total_bytes = 0;  // what the program wrote
  std::uint64_t dropped_bytes = 0;
};

struct ShotResult {
  StreamText out;
  StreamText err;
  Outcome outcome;
  std::uint64_t duration_ms = 0;     // from the moment the code was handed over to its end
  std::vector<OutputFile> files;     // ordered by path
  std::vector<OmittedFile> omitted;  // ordered by path; at most Limits::files_count
  std::uint64_t omitted_count = 0;   // how many there were in truth
  std::vector<std::string> deleted;  // input files that are gone, ordered
};

}  // namespace hutch::model
