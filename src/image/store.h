// The image store below a state directory. Owns the layout
//   images/<digest>.erofs   the image; a directory images/<digest>/ where there is no erofs
//   images/<digest>.json    what is known about it
//   images/refs/<name>      the digest that the name means now
//   images/tmp/<name>/      a build in progress; images/build.lock is held meanwhile
//   cache/                  downloads, safe to delete
// and publishes by rename, last of all the name, so that a reader never sees half an image. Who
// uses an image holds a lock on it (lock.h). Never builds, mounts or deletes an image.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "image/config.h"

namespace hutch::image {

struct Package {
  std::string kind;  // "debian", "pypi"
  std::string name;
  std::string version;

  bool operator==(const Package&) const = default;
};

enum class Format { erofs, directory };

// What `<digest>.json` holds.
struct Metadata {
  std::string digest;
  std::string recipe_digest;
  std::string created;  // UTC, as 2026-01-31T12:00:00Z
  std::uint64_t size_bytes = 0;
  Format format = Format::erofs;
  std::vector<Package> packages;
  ImageConfig config;

  bool operator==(const Metadata&) const = default;
};

struct Image {
  std::string name;
  std::string digest;
  std::string path;  // the erofs file or the directory
  bool is_erofs = false;
  ImageConfig config;
};

struct ImageInfo {
  Metadata metadata;
  std::string path;
  bool current = false;  // whether the image's name means this digest
  bool held = false;     // whether a server or a run uses it now
};

// Absolute paths of the layout above.
struct Layout {
  explicit Layout(std::string_view state_dir);

  std::string images;
  std::string refs;
  std::string scratch;  // images/tmp
  std::string lock;
  std::string cache;

  std::string image_path(std::string_view digest, Format format) const;
  std::string metadata_path(std::string_view digest) const;
  std::string ref_path(std::string_view name) const;
};

std::string metadata_text(const Metadata& metadata);
Result<Metadata> parse_metadata(std::string_view text);

// The digest that `name` means. Errors: not_found, config (the file holds no digest), io.
Result<std::string> read_ref(const Layout& layout, std::string_view name);

// `no_image` names the command that builds it.
Result<Image> open_image(std::string_view state_dir, std::string_view name_or_digest);
Result<Metadata> read_metadata(std::string_view state_dir, std::string_view name_or_digest);

// Sorted by name, the current one of each name first, then newest first. An empty list for a state
// directory that does not exist; entries whose metadata is damaged are left out.
Result<std::vector<ImageInfo>> list_images(std::string_view state_dir);

// Whether a published image becomes what its name means.
enum class Naming { take_name, leave_name };
// Moves `staged` (on the same file system) into the store and makes the name mean it.
Status publish(std::string_view state_dir, const Metadata& metadata, const std::string& staged,
               Naming naming = Naming::take_name);

}  // namespace hutch::image
