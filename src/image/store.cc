#include "image/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_to.hpp>
#include <filesystem>
#include <tuple>

#include "base/sys.h"
#include "base/units.h"
#include "image/lock.h"

namespace hutch::image {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::size_t kMetadataBytesMax = 1_MiB;
constexpr std::size_t kRefBytesMax = 128;

Error no_image(std::string_view state_dir, std::string_view name) {
  const std::string_view buildable = is_digest(name) ? "python" : name;
  return Error{ErrorCode::no_image, Step::none, 0,
               fmt::format("there is no image \"{}\" in {}; build one with: "
                           "hutch image build {} --state-dir {}",
                           name, state_dir, buildable, state_dir)};
}

}  // namespace

Layout::Layout(std::string_view state_dir)
    : images(fmt::format("{}/images", state_dir)),
      refs(images + "/refs"),
      scratch(images + "/tmp"),
      lock(images + "/build.lock"),
      cache(fmt::format("{}/cache", state_dir)) {}

std::string Layout::image_path(std::string_view digest, Format format) const {
  return fmt::format("{}/{}{}", images, digest, format == Format::erofs ? ".erofs" : "");
}

std::string Layout::metadata_path(std::string_view digest) const {
  return fmt::format("{}/{}.json", images, digest);
}

std::string Layout::ref_path(std::string_view name) const {
  return fmt::format("{}/{}", refs, name);
}

Result<std::string> read_ref(const Layout& layout, std::string_view name) {
  std::string text = TRY(sys::read_file(layout.ref_path(name), kRefBytesMax));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (!is_digest(text)) {
    return fail(ErrorCode::config, layout.ref_path(name) + " holds no digest");
  }
  return text;
}

std::string metadata_text(const Metadata& metadata) {
  json::array packages;
  for (const Package& package : metadata.packages) {
    packages.push_back(
        {{"kind", package.kind}, {"name", package.name}, {"version", package.version}});
  }
  const json::value root = {
      {"name", metadata.config.name},
      {"digest", metadata.digest},
      {"recipe_digest", metadata.recipe_digest},
      {"created", metadata.created},
      {"size_bytes", metadata.size_bytes},
      {"format", metadata.format == Format::erofs ? "erofs" : "directory"},
      {"config", to_json(metadata.config)},
      {"packages", std::move(packages)},
  };
  return json::serialize(root) + "\n";
}

Result<Metadata> parse_metadata(std::string_view text) {
  // This program wrote the file; whatever does not fit means that it is damaged.
  try {
    const json::value parsed = json::parse(text);
    const json::object& root = parsed.as_object();
    Metadata metadata;
    metadata.digest = json::value_to<std::string>(root.at("digest"));
    metadata.recipe_digest = json::value_to<std::string>(root.at("recipe_digest"));
    metadata.created = json::value_to<std::string>(root.at("created"));
    metadata.size_bytes = json::value_to<std::uint64_t>(root.at("size_bytes"));
    metadata.format = root.at("format").as_string() == "erofs" ? Format::erofs : Format::directory;
    metadata.config = TRY(config_from_json(root.at("config")));
    for (const json::value& package : root.at("packages").as_array()) {
      metadata.packages.push_back({json::value_to<std::string>(package.at("kind")),
                                   json::value_to<std::string>(package.at("name")),
                                   json::value_to<std::string>(package.at("version"))});
    }
    return metadata;
  } catch (const std::exception& error) {
    return fail(ErrorCode::config,
                fmt::format("the image's metadata is damaged: {}", error.what()));
  }
}

Result<Metadata> read_metadata(std::string_view state_dir, std::string_view name_or_digest) {
  const Layout layout(state_dir);
  std::string digest(name_or_digest);
  if (!is_digest(digest)) {
    if (!is_image_name(name_or_digest)) return fail(no_image(state_dir, name_or_digest));
    auto ref = read_ref(layout, name_or_digest);
    if (!ref && ref.error().code == ErrorCode::not_found) {
      return fail(no_image(state_dir, name_or_digest));
    }
    digest = TRY(std::move(ref));
  }
  auto text = sys::read_file(layout.metadata_path(digest), kMetadataBytesMax);
  if (!text && text.error().code == ErrorCode::not_found) {
    return fail(no_image(state_dir, name_or_digest));
  }
  if (!text) return fail(std::move(text).error());
  Metadata metadata = TRY(parse_metadata(*text));
  if (metadata.digest != digest || !sys::exists(layout.image_path(digest, metadata.format))) {
    return fail(no_image(state_dir, name_or_digest));
  }
  return metadata;
}

Result<Image> open_image(std::string_view state_dir, std::string_view name_or_digest) {
  Metadata metadata = TRY(read_metadata(state_dir, name_or_digest));
  Image image;
  image.name = metadata.config.name;
  image.digest = metadata.digest;
  image.path = Layout(state_dir).image_path(metadata.digest, metadata.format);
  image.is_erofs = metadata.format == Format::erofs;
  image.config = std::move(metadata.config);
  return image;
}

Result<std::vector<ImageInfo>> list_images(std::string_view state_dir) {
  const Layout layout(state_dir);
  std::vector<ImageInfo> infos;
  if (!sys::exists(layout.images)) return infos;
  std::error_code error;
  fs::directory_iterator it(layout.images, error);
  for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
    const std::string digest = it->path().stem().string();
    if (it->path().extension() != ".json" || !is_digest(digest)) continue;
    auto metadata = read_metadata(state_dir, digest);
    if (!metadata) continue;
    const auto ref = read_ref(layout, metadata->config.name);
    const std::string path = layout.image_path(digest, metadata->format);
    infos.push_back({std::move(metadata).value(), path, ref && *ref == digest, is_held(path)});
  }
  if (error) {
    return fail(Error{ErrorCode::io, Step::none, error.value(), "cannot list " + layout.images});
  }
  std::sort(infos.begin(), infos.end(), [](const ImageInfo& a, const ImageInfo& b) {
    return std::tie(a.metadata.config.name, b.current, b.metadata.created) <
           std::tie(b.metadata.config.name, a.current, a.metadata.created);
  });
  return infos;
}

Status publish(std::string_view state_dir, const Metadata& metadata, const std::string& staged,
               Naming naming) {
  const Layout layout(state_dir);
  const std::string path = layout.image_path(metadata.digest, metadata.format);
  const Fd lock = TRY(lock_store(layout));
  std::error_code error;
  // The same bytes may stand there already, possibly mounted; content-addressed, they are the same.
  if (!sys::exists(path)) {
    fs::rename(staged, path, error);
    if (error) {
      return fail(Error{ErrorCode::io, Step::none, error.value(), "cannot move to " + path});
    }
  }
  TRY(sys::make_directories(layout.refs, 0755));
  TRY(sys::write_file_atomic(layout.metadata_path(metadata.digest), metadata_text(metadata), 0644));
  if (naming == Naming::leave_name) return {};
  return sys::write_file_atomic(layout.ref_path(metadata.config.name), metadata.digest + "\n",
                                0644);
}

}  // namespace hutch::image
