// Builds an image from its recipe into the store. Owns images/tmp and the build lock for the time
// of one call; leaves neither on any path. Never touches an image that was published before.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "image/recipe.h"
#include "image/store.h"

namespace hutch::image {

enum class Rebuild { when_changed, always };
// How the image is to lie in the store. A file needs a kernel that mounts erofs, and mkfs.erofs.
enum class Packing { erofs_where_possible, erofs, directory };

struct BuildOptions {
  std::string state_dir;  // absolute
  std::string name;
  RecipePlaces places;
  Rebuild rebuild = Rebuild::when_changed;
  Packing packing = Packing::erofs_where_possible;
  int interrupt_fd = -1;  // readable: clean up and return `cancelled`
};

struct BuildResult {
  std::string digest;
  std::string path;
  std::uint64_t size_bytes = 0;
  bool already_built = false;
};

// Errors: not_permitted (not root), not_found (no recipe, or a missing tool and the apt line for
// it), config (image.toml), unsupported_host
// (erofs asked for and not to be had), disk_full (path, bytes free, what to do), cancelled, io (the
// end of the log). `progress` gets one short line per step.
Result<BuildResult> build_image(const BuildOptions& options, const Clock& clock,
                                const std::function<void(std::string_view)>& progress);

// "1.2 GB", "734 MB", "12 kB": powers of 1000, as df -H prints.
std::string human_bytes(std::uint64_t bytes);
// The sentence for a full disk under `directory` while doing `step`.
std::string disk_full_text(std::string_view directory, std::uint64_t bytes_free,
                           std::string_view step);

}  // namespace hutch::image
