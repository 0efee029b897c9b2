// Which layout a state directory has: the number in its file `version`. A program reads every
// layout up to its own, and refuses a newer one before it touches anything. Owns that file and
// nothing else.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hutch::cli {

// Raised by one whenever an older program would misread what this one writes there.
inline constexpr unsigned kStateVersion = 1;
// The oldest layout that is still read as it is. Where it is raised, refuse() below has to say
// which release carries such a directory over.
inline constexpr unsigned kOldestStateVersion = 1;

// What one program can read.
struct StateVersions {
  unsigned oldest = kOldestStateVersion;
  unsigned newest = kStateVersion;
};

// The layout's number. `text` is what the file holds, nothing where there is none: such a directory
// is new, or comes from before the file existed, and both are version 1. Error: state_in_use, for a
// number that is not among `versions` and for what is no number; it names both sides and the
// remedy.
Result<unsigned> judge_state_version(const std::string& state_dir,
                                     const std::optional<std::string>& text,
                                     const StateVersions& versions);

// For commands that only read: whether this program may use the directory. One that does not exist
// may be used.
Status check_state_version(const std::string& state_dir);

// For whoever is about to write there: the same, and afterwards the file is there. Makes the
// directory (0755) where there is none.
Status record_state_version(const std::string& state_dir);

}  // namespace hutch::cli
