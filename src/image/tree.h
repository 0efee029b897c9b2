// Removing and measuring what may be a whole tree. Never follows a link and never leaves the file
// system it began on.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace hutch::image {

// Nothing there is no failure. A directory that is a mount point is refused (io), naming it. Adds
// what became free on disk to `freed_bytes`.
Status remove_tree(const std::string& path, std::uint64_t& freed_bytes);

// As far as it can be read.
std::uint64_t tree_disk_bytes(const std::string& path);

}  // namespace hutch::image
