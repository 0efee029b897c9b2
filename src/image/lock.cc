#include "image/lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <sstream>

#include "base/sys.h"
#include "base/units.h"

namespace hutch::image {
namespace {

constexpr int kPauseMs = 20;
constexpr int kBuildPauseMs = 200;    // a build takes minutes
constexpr int kPatienceRounds = 500;  // 10 s
constexpr int kLookRounds = 3;        // others look by taking the lock for an instant

// Whether the lock was got within so many rounds.
Result<bool> try_lock(const Fd& fd, const std::string& path, int kind, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    if (round > 0) ::poll(nullptr, 0, kPauseMs);
    if (::flock(fd.get(), kind | LOCK_NB) == 0) return true;
    if (const int error = sys::last_errno(); error != EWOULDBLOCK && error != EINTR) {
      return fail(sys::last_error(ErrorCode::io, Step::none, "cannot lock " + path));
    }
  }
  return false;
}

// Who holds a lock on that file, as far as the kernel tells; 0 when it does not.
pid_t holder(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return 0;
  const std::string file = fmt::format("{:02x}:{:02x}:{}", major(info.st_dev), minor(info.st_dev),
                                       static_cast<std::uint64_t>(info.st_ino));
  const Result<std::string> table = sys::read_file("/proc/locks", 1_MiB);
  if (!table) return 0;
  std::istringstream lines(*table);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string number;
    std::string kind;
    std::string mode;
    std::string access;
    std::string where;
    pid_t pid = 0;
    words >> number >> kind >> mode >> access >> pid >> where;
    if (kind == "FLOCK" && where == file) return pid;
  }
  return 0;
}

bool is_still_there(const Fd& fd, const std::string& path) {
  struct stat open {};
  struct stat named {};
  return ::fstat(fd.get(), &open) == 0 && ::stat(path.c_str(), &named) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

Result<Fd> open_builds_lock(const Layout& layout) {
  return sys::open(layout.lock, O_RDWR | O_CREAT | O_NOFOLLOW, 0644);
}

}  // namespace

Result<Fd> lock_store(const Layout& layout) {
  Fd fd = TRY(sys::open(layout.images, O_RDONLY | O_DIRECTORY));
  if (TRY(try_lock(fd, layout.images, LOCK_EX, kPatienceRounds))) return fd;
  return fail(ErrorCode::state_in_use,
              fmt::format("another process changes the images in {} and does not come to an end",
                          layout.images));
}

Result<Fd> take_builds_lock(const Layout& layout, int interrupt_fd,
                            const std::function<void(std::string_view)>& progress) {
  Fd fd = TRY(open_builds_lock(layout));
  for (bool told = false; !TRY(try_lock(fd, layout.lock, LOCK_EX, 1)); told = true) {
    if (!told) progress("waiting for another build in this state directory to end");
    pollfd interrupt{interrupt_fd, POLLIN, 0};
    if (::poll(&interrupt, 1, kBuildPauseMs) > 0) {
      return fail(ErrorCode::cancelled, "interrupted");
    }
  }
  return fd;
}

std::optional<Fd> try_builds_lock(const Layout& layout) {
  Result<Fd> fd = open_builds_lock(layout);
  if (!fd) return std::nullopt;
  const Result<bool> got = try_lock(*fd, layout.lock, LOCK_EX, 1);
  if (!got || !*got) return std::nullopt;
  return *std::move(fd);
}

Result<Fd> hold_image(const Image& image) {
  Fd fd = TRY(sys::open(image.path, O_RDONLY));
  if (!TRY(try_lock(fd, image.path, LOCK_SH, kPatienceRounds))) {
    return fail(ErrorCode::state_in_use, fmt::format("process {} keeps the image {} locked",
                                                     holder(image.path), image.path));
  }
  if (is_still_there(fd, image.path)) return fd;
  return fail(
      ErrorCode::no_image,
      fmt::format("the image \"{0}\" is being removed; build it with: hutch image build {0}",
                  image.name));
}

Result<Fd> take_from_users(const std::string& path) {
  Fd fd = TRY(sys::open(path, O_RDONLY | O_NONBLOCK));
  if (TRY(try_lock(fd, path, LOCK_EX, kLookRounds))) return fd;
  const pid_t pid = holder(path);
  const std::string who = pid == 0 ? "another process" : fmt::format("process {}", pid);
  return fail(ErrorCode::state_in_use,
              fmt::format("{} is in use by {}, a server or a run: stop that one first", path, who));
}

bool is_held(const std::string& path) {
  const Result<Fd> fd = sys::open(path, O_RDONLY | O_NONBLOCK);
  if (!fd) return false;
  const Result<bool> free = try_lock(*fd, path, LOCK_EX, kLookRounds);
  return free && !*free;
}

}  // namespace hutch::image
