#include "base/sys.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace hutch::sys {
namespace {

constexpr std::size_t kFdsMax = 16;

ErrorCode classify(int number) {
  switch (number) {
    case ENOENT: return ErrorCode::not_found;
    case ENOSPC:
    case EDQUOT: return ErrorCode::disk_full;
    case EACCES:
    case EPERM: return ErrorCode::not_permitted;
    default: return ErrorCode::io;
  }
}

tl::unexpected<Error> failed(std::string what) {
  return fail(last_error(classify(errno), Step::none, std::move(what)));
}

}  // namespace

Error last_error(ErrorCode code, Step step, std::string what) {
  return Error{code, step, errno, std::move(what)};
}

int last_errno() { return errno; }

bool would_block(const Error& error) { return error.sys_errno == EAGAIN; }

Result<Fd> open_at(int dir, const std::string& path, int flags, mode_t mode) {
  for (;;) {
    const int fd = ::openat(dir, path.c_str(), flags | O_CLOEXEC, mode);
    if (fd >= 0) return Fd(fd);
    if (errno != EINTR) return failed("cannot open " + path);
  }
}

Result<Fd> open(const std::string& path, int flags, mode_t mode) {
  return open_at(AT_FDCWD, path, flags, mode);
}

Result<std::string> read_file(const std::string& path, std::size_t bytes_max) {
  const Fd fd = TRY(open(path, O_RDONLY));
  std::string text;
  std::array<char, 16384> chunk{};
  for (;;) {
    const ssize_t got = ::read(fd.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed("cannot read " + path);
    if (got == 0) return text;
    if (text.size() + static_cast<std::size_t>(got) > bytes_max) {
      return fail(ErrorCode::too_large,
                  path + " is larger than " + std::to_string(bytes_max) + " bytes");
    }
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

Status write_control(const std::string& path, std::string_view text) {
  const Fd fd = TRY(open(path, O_WRONLY));
  const ssize_t put = ::write(fd.get(), text.data(), text.size());
  if (put < 0) return failed("cannot write " + path);
  return {};
}

Status write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return failed("cannot write");
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

Status write_file_atomic(const std::string& path, std::string_view bytes, mode_t mode) {
  // Two processes may be at it at once.
  const std::string temporary = path + "." + std::to_string(::getpid()) + ".new";
  {
    const Fd fd = TRY(open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode));
    if (auto written = write_all(fd.get(), bytes); !written) {
      ::unlink(temporary.c_str());
      return written;
    }
    if (::fsync(fd.get()) != 0) return failed("cannot sync " + temporary);
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) return failed("cannot rename to " + path);
  return {};
}

Result<Pipe> pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return failed("cannot make a pipe");
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

Result<std::pair<Fd, Fd>> socket_pair(int type) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return failed("cannot make a socket pair");
  }
  return std::pair<Fd, Fd>(Fd(ends[0]), Fd(ends[1]));
}

Status set_nonblocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    return failed("cannot make a descriptor non-blocking");
  }
  return {};
}

Result<Fd> duplicate(int fd) {
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
  if (copy < 0) return failed("cannot duplicate a descriptor");
  return Fd(copy);
}

Result<Fd> memory_file(const std::string& name, std::string_view bytes) {
  Fd fd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return failed("cannot make a memory file");
  TRY(write_all(fd.get(), bytes));
  constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  if (::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) return failed("cannot seal a memory file");
  return fd;
}

Status send_message(int socket, std::span<const std::byte> bytes, std::span<const int> fds) {
  if (fds.size() > kFdsMax) return fail(ErrorCode::internal, "too many descriptors in a message");
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kFdsMax)> control{};
  iovec data{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
    cmsghdr* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    std::memcpy(CMSG_DATA(part), fds.data(), sizeof(int) * fds.size());
  }
  for (;;) {
    if (::sendmsg(socket, &header, MSG_NOSIGNAL) >= 0) return {};
    if (errno == EINTR) continue;
    if (errno == EPIPE || errno == ECONNRESET) {
      return fail(last_error(ErrorCode::sandbox_lost, Step::none, "the other side has closed"));
    }
    return failed("cannot send a message");
  }
}

Result<Message> receive_message(int socket, std::span<std::byte> buffer) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kFdsMax)> control{};
  iovec data{buffer.data(), buffer.size()};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t got = 0;
  // A peer that has closed with our bytes unread makes this call fail once; what it had sent before
  // is still there to be received.
  do {
    got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
  Message message;
  if (got < 0) {
    if (errno == EAGAIN) {
      message.would_block = true;
      return message;
    }
    return failed("cannot receive a message");
  }
  message.size = static_cast<std::size_t>(got);
  message.truncated = (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    std::array<int, kFdsMax> numbers{};
    std::memcpy(numbers.data(), CMSG_DATA(part), std::min(count, kFdsMax) * sizeof(int));
    for (std::size_t i = 0; i < std::min(count, kFdsMax); ++i) message.fds.emplace_back(numbers[i]);
  }
  return message;
}

Result<ReadResult> read_some(int fd, std::span<std::byte> buffer) {
  for (;;) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got >= 0) return ReadResult{static_cast<std::size_t>(got), false};
    if (errno == EINTR) continue;
    if (errno == EAGAIN) return ReadResult{0, true};
    return failed("cannot read");
  }
}

Result<std::size_t> write_some(int fd, std::span<const std::byte> bytes) {
  for (;;) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put >= 0) return static_cast<std::size_t>(put);
    if (errno == EINTR) continue;
    if (errno == EAGAIN) return std::size_t{0};
    return failed("cannot write");
  }
}

namespace {

Result<std::size_t> send_with(int socket, std::span<const std::byte> bytes, int flags) {
  for (;;) {
    const ssize_t put = ::send(socket, bytes.data(), bytes.size(), flags | MSG_NOSIGNAL);
    if (put >= 0) return static_cast<std::size_t>(put);
    if (errno == EINTR) continue;
    if (errno == EAGAIN) return std::size_t{0};
    return failed("cannot write to a socket");
  }
}

}  // namespace

Result<std::size_t> send_some(int socket, std::span<const std::byte> bytes) {
  return send_with(socket, bytes, 0);
}

Result<std::size_t> send_now(int socket, std::span<const std::byte> bytes) {
  return send_with(socket, bytes, MSG_DONTWAIT);
}

Status make_directories(const std::string& path, mode_t mode) {
  for (std::size_t at = 1; at != std::string::npos;) {
    at = path.find('/', at + 1);
    const std::string prefix = path.substr(0, at);
    if (::mkdir(prefix.c_str(), mode) != 0 && errno != EEXIST) {
      return failed("cannot make the directory " + prefix);
    }
  }
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return failed("cannot look at " + path);
  if (!S_ISDIR(info.st_mode)) return fail(ErrorCode::io, path + " is not a directory");
  return {};
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

}  // namespace hutch::sys
