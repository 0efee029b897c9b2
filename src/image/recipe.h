// Finds a recipe: a directory with image.toml and a program `build ROOTFS CACHE WORK`. Never runs
// it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "image/config.h"
#include "image/digest.h"

namespace hutch::image {

struct Recipe {
  std::string directory;  // absolute
  std::string digest;     // changes whenever a file of the recipe does
  ImageConfig config;
};

struct RecipePlaces {
  std::string given;        // --recipe; when set it is the only place
  std::string images_dir;   // $HUTCH_IMAGES_DIR, or empty
  std::string program_dir;  // the directory of this program, or empty
};

// The places asked, from this process's environment and its own path.
RecipePlaces places_of_this_process(std::string given);

// In order of preference: --recipe alone when given, else $HUTCH_IMAGES_DIR/<name>,
// <program>/../../images/<name> (a source tree), <program>/../share/hutch/images/<name> and
// /usr/share/hutch/images/<name>.
std::vector<std::string> recipe_candidates(std::string_view name, const RecipePlaces& places);

// `not_found` lists the places asked; `config` when image.toml is wrong or names another image.
Result<Recipe> find_recipe(std::string_view name, const RecipePlaces& places, const Stop& stop);

}  // namespace hutch::image
