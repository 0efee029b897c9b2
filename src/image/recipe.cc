#include "image/recipe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>

#include "base/sys.h"
#include "base/units.h"

namespace hutch::image {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kTomlBytesMax = 64_KiB;

}  // namespace

RecipePlaces places_of_this_process(std::string given) {
  RecipePlaces places{.given = std::move(given), .images_dir = {}, .program_dir = {}};
  if (const char* dir = std::getenv("HUTCH_IMAGES_DIR"); dir != nullptr) places.images_dir = dir;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) places.program_dir = program.parent_path().string();
  return places;
}

std::vector<std::string> recipe_candidates(std::string_view name, const RecipePlaces& places) {
  if (!places.given.empty()) return {places.given};
  std::vector<std::string> candidates;
  if (!places.images_dir.empty()) {
    candidates.push_back(fmt::format("{}/{}", places.images_dir, name));
  }
  if (!places.program_dir.empty()) {
    const fs::path program(places.program_dir);
    for (const char* way : {"../../images", "../share/hutch/images"}) {
      candidates.push_back((program / way / name).lexically_normal().string());
    }
  }
  candidates.push_back(fmt::format("/usr/share/hutch/images/{}", name));
  return candidates;
}

Result<Recipe> find_recipe(std::string_view name, const RecipePlaces& places, const Stop& stop) {
  const std::vector<std::string> candidates = recipe_candidates(name, places);
  for (const std::string& candidate : candidates) {
    std::error_code error;
    const fs::path directory = fs::absolute(candidate, error);
    if (error || !sys::exists((directory / "build").string())) continue;
    const std::string toml_path = (directory / "image.toml").string();
    const std::string toml = TRY(sys::read_file(toml_path, kTomlBytesMax));
    Recipe recipe;
    recipe.directory = directory.string();
    recipe.config = TRY(parse_image_toml(toml, toml_path));
    if (recipe.config.name != name) {
      return fail(ErrorCode::config, fmt::format("{} describes the image \"{}\", not \"{}\"",
                                                 toml_path, recipe.config.name, name));
    }
    recipe.digest = TRY(tree_digest(recipe.directory, TreeKind::recipe, stop));
    return recipe;
  }
  return fail(ErrorCode::not_found,
              fmt::format("there is no recipe for the image \"{}\"; looked in {}", name,
                          fmt::join(candidates, ", ")));
}

}  // namespace hutch::image
