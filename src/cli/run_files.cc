#include "cli/run_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/sys.h"
#include "cli/printable.h"
#include "model/files.h"

namespace hutch::cli {
namespace {

constexpr mode_t kDirectoryMode = 0777;  // less the umask
constexpr mode_t kFileMode = 0666;
constexpr int kNamesTried = 100;

// The failure of a system call on `path`, which the program in the sandbox has named.
tl::unexpected<Error> failed(const std::string& directory, std::string_view path, Error cause) {
  cause.message = fmt::format("cannot write {} in {}", printable(path), printable(directory));
  return fail(std::move(cause));
}

tl::unexpected<Error> failed(const std::string& directory, std::string_view path) {
  const ErrorCode code = sys::last_errno() == ENOSPC ? ErrorCode::disk_full : ErrorCode::io;
  return failed(directory, path, sys::last_error(code, Step::none, ""));
}

// The directory that holds `path`, made where it is missing, from `top` downwards.
Result<Fd> parent_of(const Fd& top, std::string_view path, const std::string& directory) {
  Fd at = TRY(sys::duplicate(top.get()));
  std::string_view rest = path;
  for (std::size_t slash = rest.find('/'); slash != std::string_view::npos;
       slash = rest.find('/')) {
    const std::string name(rest.substr(0, slash));
    if (::mkdirat(at.get(), name.c_str(), kDirectoryMode) != 0 && sys::last_errno() != EEXIST) {
      return failed(directory, path);
    }
    Result<Fd> next = sys::open_at(at.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!next) {
      const int number = next.error().sys_errno;
      if (number != ELOOP && number != ENOTDIR) return failed(directory, path, next.error());
      const std::size_t shown = path.size() - rest.size() + slash;
      return fail(
          ErrorCode::rejected,
          fmt::format("{} in {} was not written: {} is there already, and is no directory",
                      printable(path), printable(directory), printable(path.substr(0, shown))));
    }
    at = std::move(*next);
    rest.remove_prefix(slash + 1);
  }
  return at;
}

// A new file beside the one that it will become. Gone again unless it was kept.
class Draft {
 public:
  static Result<Draft> make(const Fd& parent) {
    for (int number = 0; number < kNamesTried; ++number) {
      std::string name = fmt::format(".hutch-{}-{}.part", ::getpid(), number);
      constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
      Result<Fd> fd = sys::open_at(parent.get(), name, kFlags, kFileMode);
      if (fd) return Draft(parent.get(), std::move(name), std::move(*fd));
      if (fd.error().sys_errno != EEXIST) return fail(fd.error());
    }
    return fail(ErrorCode::io, "no free name for a new file");
  }
  Draft(Draft&& other) noexcept
      : parent_(other.parent_), name_(std::exchange(other.name_, "")), fd_(std::move(other.fd_)) {}
  Draft& operator=(Draft&&) = delete;
  ~Draft() {
    if (!name_.empty()) ::unlinkat(parent_, name_.c_str(), 0);
  }

  int fd() const { return fd_.get(); }
  // 0, or -1 as rename(2). What is there under the name, a link itself included, is replaced.
  int keep_as(const std::string& name) {
    const int renamed = ::renameat(parent_, name_.c_str(), parent_, name.c_str());
    if (renamed == 0) name_.clear();
    return renamed;
  }

 private:
  Draft(int parent, std::string name, Fd fd)
      : parent_(parent), name_(std::move(name)), fd_(std::move(fd)) {}

  int parent_;
  std::string name_;
  Fd fd_;
};

}  // namespace

Result<RunFiles> RunFiles::open(const std::string& directory) {
  TRY(sys::make_directories(directory, kDirectoryMode));
  return RunFiles(directory, TRY(sys::open(directory, O_RDONLY | O_DIRECTORY)));
}

Status RunFiles::write(std::string_view given, std::string_view bytes) {
  if (const auto problem = model::path_problem(given)) {
    return fail(ErrorCode::rejected,
                fmt::format("a file was not written: {}", printable(*problem)));
  }
  const std::string path = model::normalized_path(given);
  const Fd parent = TRY(parent_of(fd_, path, directory_));
  Result<Draft> draft = Draft::make(parent);
  if (!draft) return failed(directory_, path, draft.error());
  if (const Status put = sys::write_all(draft->fd(), bytes); !put) {
    return failed(directory_, path, put.error());
  }
  if (draft->keep_as(path.substr(path.rfind('/') + 1)) != 0) return failed(directory_, path);
  count_ += 1;
  bytes_ += bytes.size();
  return {};
}

}  // namespace hutch::cli
