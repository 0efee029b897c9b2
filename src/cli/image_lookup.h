// Where the image of a run is found. Reads only.
#pragma once

#include <string>

#include "base/result.h"
#include "image/store.h"

namespace hutch::cli {

struct FoundImage {
  image::Image image;
  std::string state_dir;  // whose store has it
};

// An `ordinary` user, who can mount no image file and has to unpack it, is served from the store of
// the host's root as well. Error: no_image, about `state_dir`.
Result<FoundImage> find_image(const std::string& state_dir, const std::string& name, bool ordinary);

}  // namespace hutch::cli
