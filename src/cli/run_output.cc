#include "cli/run_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <span>

#include "base/sys.h"

namespace hutch::cli {
namespace {

// A pipe that polls as writable takes this much without blocking. A terminal that could not be
// opened anew may block with any size, and does so least with small ones.
constexpr std::size_t kPartBytes = 4096;
constexpr std::size_t kCarefulPartBytes = 256;

}  // namespace

RunOutput::RunOutput(int fd, int stop_fd) : fd_(fd), stop_fd_(stop_fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return;
  if (S_ISFIFO(info.st_mode)) kind_ = Kind::pipe;
  if (S_ISSOCK(info.st_mode)) kind_ = Kind::socket;
  if (!S_ISCHR(info.st_mode) || ::isatty(fd) != 1) return;
  kind_ = Kind::terminal;
  // Non-blocking belongs to the open file, which the shell shares: this one is ours alone.
  auto own = sys::open(fmt::format("/proc/self/fd/{}", fd), O_WRONLY | O_NOCTTY | O_NONBLOCK);
  if (own) own_ = std::move(*own);
}

Status RunOutput::write(std::string_view bytes) {
  if (bytes.empty()) return {};
  inside_line_ = bytes.back() != '\n';
  while (!bytes.empty()) {
    if (kind_ != Kind::file) {
      std::array<pollfd, 2> on{pollfd{own_ ? own_.get() : fd_, POLLOUT, 0},
                               pollfd{stop_fd_, POLLIN, 0}};
      if (::poll(on.data(), on.size(), -1) < 1) continue;  // a signal that nobody waits for
      if (on[1].revents != 0) return fail(ErrorCode::cancelled, "interrupted");
    }
    const Result<std::size_t> put = write_part(bytes);
    if (!put) return failed(put.error());
    bytes.remove_prefix(*put);
  }
  return {};
}

tl::unexpected<Error> RunOutput::failed(Error cause) const {
  if (cause.sys_errno == EPIPE) cause.code = ErrorCode::cancelled;
  cause.message =
      fmt::format("cannot write to standard {}", fd_ == STDOUT_FILENO ? "output" : "error");
  return fail(std::move(cause));
}

Result<std::size_t> RunOutput::write_part(std::string_view bytes) const {
  const auto part = [&](std::size_t most) {
    return std::as_bytes(std::span(bytes.substr(0, most)));
  };
  switch (kind_) {
    case Kind::file: return sys::write_some(fd_, part(bytes.size()));
    case Kind::pipe: return sys::write_some(fd_, part(kPartBytes));
    case Kind::socket: return sys::send_now(fd_, part(bytes.size()));
    case Kind::terminal: break;
  }
  return own_ ? sys::write_some(own_.get(), part(kPartBytes))
              : sys::write_some(fd_, part(kCarefulPartBytes));
}

}  // namespace hutch::cli
