#include "cli/image_lookup.h"

#include <utility>

#include "config/state_dir.h"

namespace hutch::cli {

Result<FoundImage> find_image(const std::string& state_dir, const std::string& name,
                              bool ordinary) {
  auto own = image::open_image(state_dir, name);
  if (own) return FoundImage{*std::move(own), state_dir};
  if (ordinary) {
    auto of_root = image::open_image(config::kSystemStateDir, name);
    if (of_root) return FoundImage{*std::move(of_root), config::kSystemStateDir};
  }
  return fail(std::move(own).error());
}

}  // namespace hutch::cli
