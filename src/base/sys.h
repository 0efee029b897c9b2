// Thin wrappers over system calls that turn errno into an Error. The only code that reads errno,
// apart from the *_unsafe.cc files that run between clone and exec.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace hutch::sys {

// The Error for the system call that has just failed on this thread. `what` is the sentence.
Error last_error(ErrorCode code, Step step, std::string what);
// errno of the call that has just failed, for code that decides by it (EAGAIN, ENOENT, ...).
int last_errno();
// The call behind this Error would have had to wait.
bool would_block(const Error& error);

// open(2) with O_CLOEXEC added; io on failure, not_found on ENOENT, disk_full on ENOSPC.
Result<Fd> open(const std::string& path, int flags, mode_t mode = 0);
Result<Fd> open_at(int dir, const std::string& path, int flags, mode_t mode = 0);
// Whole file, at most `bytes_max` (procfs and sysfs files included); too_large beyond.
Result<std::string> read_file(const std::string& path, std::size_t bytes_max);
// One write(2) of the whole text, as cgroup and procfs files want it. Does not create.
Status write_control(const std::string& path, std::string_view text);
// Creates or replaces by rename from a temporary name beside it, after fsync.
Status write_file_atomic(const std::string& path, std::string_view bytes, mode_t mode);
Status write_all(int fd, std::string_view bytes);

struct Pipe {
  Fd read;
  Fd write;
};
Result<Pipe> pipe();                              // O_CLOEXEC
Result<std::pair<Fd, Fd>> socket_pair(int type);  // AF_UNIX, SOCK_CLOEXEC added
Status set_nonblocking(int fd);
Result<Fd> duplicate(int fd);                                             // O_CLOEXEC
Result<Fd> memory_file(const std::string& name, std::string_view bytes);  // sealed against change

// One SEQPACKET message with descriptors. EPIPE and ECONNRESET come back as sandbox_lost.
Status send_message(int socket, std::span<const std::byte> bytes, std::span<const int> fds);
struct Message {
  std::size_t size = 0;  // 0: the peer has closed
  std::vector<Fd> fds;
  bool would_block = false;
  bool truncated = false;  // the peer sent more than fits: treat it as hostile
};
// At most 16 descriptors; received with O_CLOEXEC.
Result<Message> receive_message(int socket, std::span<std::byte> buffer);

// Reads at most `count` bytes: n > 0, 0 at end of file, would_block when there is nothing yet.
struct ReadResult {
  std::size_t size = 0;
  bool would_block = false;
};
Result<ReadResult> read_some(int fd, std::span<std::byte> buffer);
// Writes what the descriptor takes now; 0 when it would block.
Result<std::size_t> write_some(int fd, std::span<const std::byte> bytes);
// The same for a stream socket; a peer that has closed gives an Error, never SIGPIPE.
Result<std::size_t> send_some(int socket, std::span<const std::byte> bytes);
// The same for a stream socket that may block for others who share it: 0 when it would.
Result<std::size_t> send_now(int socket, std::span<const std::byte> bytes);

Status make_directories(const std::string& path, mode_t mode);
bool exists(const std::string& path);

}  // namespace hutch::sys
