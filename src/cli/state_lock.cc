#include "cli/state_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <utility>

#include "base/sys.h"
#include "cli/alarm.h"
#include "cli/instance.h"

namespace hutch::cli {
namespace {

constexpr unsigned kPatienceSeconds = 10;

tl::unexpected<Error> refuse(std::string sentence) {
  return fail(ErrorCode::state_in_use, std::move(sentence));
}

// The same failure, as the one kind that this file reports.
tl::unexpected<Error> refuse(const std::string& directory, Error cause) {
  return fail(Error{ErrorCode::state_in_use, Step::none, cause.sys_errno,
                    fmt::format("the state directory {} is not usable: {}", directory,
                                std::move(cause.message))});
}

// Whoever can write here could exchange an image or a pid file under the hands of root.
Status check_directory(const std::string& directory) {
  struct stat info {};
  if (::stat(directory.c_str(), &info) != 0) {
    return refuse(directory, sys::last_error(ErrorCode::io, Step::none, "cannot look at it"));
  }
  // Inside a user namespace every id of the host that is not mapped shows as this one.
  constexpr uid_t kUnmapped = 65'534;
  if (info.st_uid == kUnmapped && ::geteuid() == 0) {
    return refuse(
        fmt::format("the state directory {} belongs to another user: leave --state-dir "
                    "out, or name a directory of your own; images that root has built "
                    "in /var/lib/hutch are found without it",
                    directory));
  }
  if (info.st_uid != ::geteuid()) {
    return refuse(
        fmt::format("the state directory {0} belongs to uid {1}, and this is uid {2}: "
                    "run: chown {2} {0}",
                    directory, info.st_uid, ::geteuid()));
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return refuse(fmt::format(
        "the state directory {0} is writable by other users: run: chmod go-w {0}", directory));
  }
  return {};
}

pid_t read_pid(const std::string& path) {
  const Result<std::string> text = sys::read_file(path, 64);
  pid_t pid = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), pid);
  return pid;
}

std::string lock_path(const std::string& directory) { return directory + "/server.lock"; }

bool try_lock(const Fd& lock) { return ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0; }

bool lock_in_time(const Fd& lock) {
  const Alarm alarm(kPatienceSeconds);
  return ::flock(lock.get(), LOCK_EX) == 0;
}

tl::unexpected<Error> in_use(const std::string& directory, pid_t taker) {
  const pid_t warden = read_pid(directory + "/warden.pid");
  const pid_t pid = is_running(taker) || warden == 0 ? taker : warden;
  return refuse(
      fmt::format("the state directory {} is in use by process {}: stop that one first, or "
                  "choose another with --state-dir",
                  directory, pid));
}

Status write_number(const std::string& directory, const std::string& path, pid_t pid) {
  const Result<Fd> fd = sys::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0644);
  if (!fd) return refuse(directory, fd.error());
  if (const Status put = sys::write_all(fd->get(), fmt::format("{}\n", pid)); !put) {
    return refuse(directory, put.error());
  }
  return {};
}

}  // namespace

Status StateLock::make_own(const std::string& directory) {
  if (const Status made = sys::make_directories(directory, 0755); !made) {
    return refuse(directory, made.error());
  }
  return check_directory(directory);
}

Result<Fd> StateLock::open_lock(const std::string& directory) {
  TRY(make_own(directory));
  // Nothing that stays open can be written to: whoever takes the server over must not be able to
  // name another process to those who read these files.
  Result<Fd> opened = sys::open(lock_path(directory), O_RDONLY | O_CREAT | O_NOFOLLOW, 0644);
  if (!opened) return refuse(directory, opened.error());
  return std::move(*opened);
}

Result<StateLock> StateLock::take(const std::string& directory) {
  Fd lock = TRY(open_lock(directory));
  if (!try_lock(lock)) {
    // The text in the lock is the server's pid. When that one was killed, its warden holds the
    // lock until it has taken everything down, which it does by itself.
    const pid_t taker = read_pid(lock_path(directory));
    if (is_running(taker) || !lock_in_time(lock)) return in_use(directory, taker);
  }
  TRY(write_number(directory, lock_path(directory), ::getpid()));
  return StateLock(directory, std::move(lock));
}

Result<std::optional<StateLock>> StateLock::take_if_free(const std::string& directory) {
  Fd lock = TRY(open_lock(directory));
  if (!try_lock(lock)) return std::optional<StateLock>();
  TRY(write_number(directory, lock_path(directory), ::getpid()));
  return std::optional<StateLock>(StateLock(directory, std::move(lock)));
}

Status StateLock::write_pid(const std::string& name, pid_t pid) {
  const std::string path = fmt::format("{}/{}.pid", directory_, name);
  TRY(write_number(directory_, path, pid));
  pid_files_.push_back(path);
  return {};
}

// Without root the directory is closed to us; the warden has removed them by now.
StateLock::~StateLock() {
  for (const std::string& path : pid_files_) ::unlink(path.c_str());
}

}  // namespace hutch::cli
