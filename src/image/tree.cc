#include "image/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string_view>
#include <vector>

#include "base/sys.h"

namespace hutch::image {
namespace {

constexpr int kDepthMax = 512;
constexpr std::uint64_t kBlockBytes = 512;  // the unit of st_blocks, whatever the file system

// One walk over a tree; the directory above what it works on is always an open descriptor, so that
// nobody can exchange a directory for a link meanwhile.
class Walk {
 public:
  enum class Purpose { measure, remove };

  explicit Walk(Purpose purpose) : purpose_(purpose) {}

  Status take(int parent, const std::string& name, const std::string& shown, int depth) {
    struct stat info {};
    if (::fstatat(parent, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
      return sys::last_errno() == ENOENT ? Status() : failed("look at", shown);
    }
    if (depth == 0) device_ = info.st_dev;
    if (info.st_dev != device_ || depth > kDepthMax) {
      return fail(ErrorCode::io, depth > kDepthMax ? shown + " lies too deep"
                                                   : shown + " is a mount point; unmount it first");
    }
    const bool directory = S_ISDIR(info.st_mode);
    if (directory) TRY(empty(parent, name, shown, info.st_mode, depth));
    if (directory || info.st_nlink == 1) {
      bytes_ += static_cast<std::uint64_t>(info.st_blocks) * kBlockBytes;
    }
    if (purpose_ == Purpose::measure) return {};
    if (::unlinkat(parent, name.c_str(), directory ? AT_REMOVEDIR : 0) == 0) return {};
    return sys::last_errno() == ENOENT ? Status() : failed("remove", shown);
  }

  std::uint64_t bytes() const { return bytes_; }

 private:
  static Status failed(std::string_view what, const std::string& shown) {
    return fail(
        sys::last_error(ErrorCode::io, Step::none, "cannot " + std::string(what) + " " + shown));
  }

  Status empty(int parent, const std::string& name, const std::string& shown, mode_t mode,
               int depth) {
    // Directories of an image may lack what emptying them needs, and not everybody is root.
    if (purpose_ == Purpose::remove && (mode & S_IRWXU) != S_IRWXU &&
        ::fchmodat(parent, name.c_str(), mode | S_IRWXU, 0) != 0) {
      return failed("open", shown);
    }
    const Fd directory = TRY(sys::open_at(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    for (const std::string& entry : TRY(names_in(directory))) {
      TRY(take(directory.get(), entry, shown + "/" + entry, depth + 1));
    }
    return {};
  }

  static Result<std::vector<std::string>> names_in(const Fd& directory) {
    Fd own = TRY(sys::duplicate(directory.get()));
    const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(own.get()), ::closedir);
    if (!listing) return fail(sys::last_error(ErrorCode::io, Step::none, "cannot list"));
    static_cast<void>(own.release());
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(listing.get())) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    return names;
  }

  const Purpose purpose_;
  dev_t device_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace

Status remove_tree(const std::string& path, std::uint64_t& freed_bytes) {
  Walk walk(Walk::Purpose::remove);
  Status status = walk.take(AT_FDCWD, path, path, 0);
  freed_bytes += walk.bytes();
  return status;
}

std::uint64_t tree_disk_bytes(const std::string& path) {
  Walk walk(Walk::Purpose::measure);
  ignore_error(walk.take(AT_FDCWD, path, path, 0));
  return walk.bytes();
}

}  // namespace hutch::image
