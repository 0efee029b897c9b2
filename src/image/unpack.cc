#include "image/unpack.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/rollback.h"
#include "base/sys.h"
#include "image/build.h"
#include "image/lock.h"
#include "image/spawn.h"
#include "image/tree.h"

namespace hutch::image {
namespace {

namespace fs = std::filesystem;

Status extract(const std::string& file, const std::string& directory, const std::string& log,
               int interrupt_fd) {
  if (find_program("fsck.erofs").empty()) {
    return fail(ErrorCode::not_found,
                "fsck.erofs, which unpacks an image, is missing; type: apt-get install "
                "erofs-utils");
  }
  Command command;
  // Owners are nobody inside a sandbox; modes matter, and the umask must not change them.
  command.argv = {"fsck.erofs", "--extract=" + directory, "--no-preserve-owner", "--preserve-perms",
                  file};
  command.log_path = log;
  command.interrupt_fd = interrupt_fd;
  const Exit ended = TRY(image::run(command));
  if (ended.code == 0) return {};
  if (ended.disk_full) {
    std::error_code error;
    const fs::space_info space = fs::space(directory, error);
    return fail(ErrorCode::disk_full,
                disk_full_text(directory, error ? 0 : space.available, "unpacking"));
  }
  return fail(ErrorCode::io, fmt::format("cannot unpack {}: fsck.erofs says: {}", file,
                                         ended.tail.substr(0, 2000)));
}

void discard(const std::string& path) {
  std::uint64_t freed_bytes = 0;
  ignore_error(remove_tree(path, freed_bytes));
}

bool is_unpacked(const Metadata& metadata, const Layout& layout) {
  return sys::exists(layout.image_path(metadata.digest, Format::directory));
}

Image as_image(const Metadata& metadata, const Layout& layout) {
  return {.name = metadata.config.name,
          .digest = metadata.digest,
          .path = layout.image_path(metadata.digest, Format::directory),
          .is_erofs = false,
          .config = metadata.config};
}

}  // namespace

Result<Image> unpack_image(const UnpackOptions& options,
                           const std::function<void(std::string_view)>& progress) {
  Metadata metadata = TRY(read_metadata(options.from_state_dir, options.name));
  const Layout from(options.from_state_dir);
  const Layout to(options.to_state_dir);
  if (is_unpacked(metadata, to)) return as_image(metadata, to);
  const std::string source = from.image_path(metadata.digest, metadata.format);
  if (metadata.format == Format::directory) return as_image(metadata, from);
  for (const std::string& directory : {to.images, to.refs}) {
    TRY(sys::make_directories(directory, 0755));
  }
  const Fd lock = TRY(take_builds_lock(to, options.interrupt_fd, progress));
  if (is_unpacked(metadata, to)) return as_image(metadata, to);
  progress(fmt::format("unpacking the image {} (once)", metadata.config.name));
  const std::string work = to.scratch + "/unpack";
  discard(work);
  TRY(sys::make_directories(work, 0755));
  Rollback rollback;
  rollback.add([&work] { discard(work); });
  TRY(extract(source, work + "/rootfs", work + "/log", options.interrupt_fd));
  metadata.format = Format::directory;
  // Who names a digest wants that image once, and not another meaning of the name.
  const bool by_digest = options.name == metadata.digest;
  TRY(publish(options.to_state_dir, metadata, work + "/rootfs",
              by_digest ? Naming::leave_name : Naming::take_name));
  return as_image(metadata, to);
}

}  // namespace hutch::image
