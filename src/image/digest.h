// SHA-256 over files and trees. Names content; keeps nothing.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hutch::image {

// Called between pieces of work; true ends it with `cancelled`.
using Stop = std::function<bool()>;

// Lower-case hexadecimal.
Result<std::string> file_digest(const std::string& path, const Stop& stop);

// One digest for names, kinds, executable bits, link targets and contents below `directory`, in
// sorted order; owners and times do not count. Names that start with a dot and `__pycache__`
// do not count either when `kind` is recipe: editors and interpreters leave them behind.
enum class TreeKind { recipe, image };
Result<std::string> tree_digest(const std::string& directory, TreeKind kind, const Stop& stop);

}  // namespace hutch::image
