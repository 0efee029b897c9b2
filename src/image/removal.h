// Takes images, and what dead builds have left, out of the store. Owns the rule of what may go:
// never an image that somebody holds (store.h), and while a build runs nothing that could be its
// own. Removes links and never what they point to, and stays on one file system.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hutch::image {

struct RemovedImage {
  std::string digest;
  std::vector<std::string> names;  // that meant it, and are gone with it
  std::uint64_t freed_bytes = 0;   // on disk
};

enum class NamedImages { refuse, remove };

// `word` is a name, a digest, or the first digits of one (at least 6). Errors: no_image,
// bad_request (a digest that two images begin with; an image that a name means, with
// NamedImages::refuse), state_in_use (somebody holds it, naming the process), not_permitted (the
// store is somebody else's), io.
Result<RemovedImage> remove_image(const std::string& state_dir, const std::string& word,
                                  NamedImages named);

struct PruneOptions {
  std::string state_dir;
  bool cache = false;    // the downloads as well
  bool dry_run = false;  // only say what would go
};

struct Pruned {
  std::vector<RemovedImage> images;    // no name meant them
  std::vector<std::string> kept;       // digests that no name means, and that somebody holds
  std::vector<std::string> leftovers;  // paths of what dead builds and removals had left
  bool cache = false;                  // whether the downloads went
  bool build_runs = false;             // then leftovers and downloads stay
  std::uint64_t freed_bytes = 0;       // of all of it, on disk
};

// A state directory without a store is empty. Errors: not_permitted, state_in_use, config (a name
// that holds no digest), io.
Result<Pruned> prune(const PruneOptions& options);

}  // namespace hutch::image
