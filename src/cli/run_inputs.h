// The files that `hutch run --in` sends along: found on this host, read, and named as the program
// will find them. Reads only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "model/files.h"

namespace hutch::cli {

struct RunInputLimits {
  std::size_t files = 10'000;
  std::uint64_t bytes = 192_MiB;  // of all files together: what the largest request can carry
};

struct RunInputs {
  std::vector<model::InputFile> files;
  std::vector<std::string> skipped;  // inside directories, and neither file nor directory
};

// Each argument is PATH or PATH:NAME. The last colon parts the two, unless the whole is the path of
// something that exists. NAME is where the file, or the content of the directory, lies in the
// working directory; without it, under the last part of PATH, and the content of "." directly. Of a
// directory every regular file comes, in the order of their names; symbolic links inside it are
// skipped, PATH itself may be one. Errors: config, naming the argument and the remedy.
Result<RunInputs> read_inputs(const std::vector<std::string>& arguments,
                              const RunInputLimits& limits);

}  // namespace hutch::cli
