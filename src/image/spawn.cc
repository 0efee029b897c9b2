#include "image/spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <span>
#include <sstream>

#include "base/fd.h"
#include "base/sys.h"

namespace hutch::image {
namespace {

constexpr std::size_t kTailBytes = 64U << 10U;
constexpr int kGraceMs = 5'000;  // for a namespace to empty itself before its wrapper is killed
constexpr std::string_view kSearch = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin";

bool complains_about_space(std::string_view text) {
  constexpr std::array<std::string_view, 4> kWords = {
      "No space left on device", "Disk quota exceeded", "don't have enough free space", "Errno 28"};
  return std::any_of(kWords.begin(), kWords.end(), [&](std::string_view words) {
    return text.find(words) != std::string_view::npos;
  });
}

// The attributes of posix_spawn: a process group of its own, no blocked or ignored signal.
class Attributes {
 public:
  Attributes() {
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

class FileActions {
 public:
  FileActions(int out, int err) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, out, 1);
    posix_spawn_file_actions_adddup2(&actions_, err, 2);
  }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

// A started program. Its destructor ends it, so that no path leaves one behind.
class Child {
 public:
  Child(pid_t pid, Fd handle, Command::Kind kind)
      : pid_(pid), handle_(std::move(handle)), kind_(kind) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (!reaped_) end();
  }

  int handle() const { return handle_.get(); }

  int wait() {
    int status = 0;
    pid_t got = -1;
    do {
      got = ::waitpid(pid_, &status, 0);
    } while (got < 0 && sys::last_errno() == EINTR);
    reaped_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  void end() {
    // The wrapper of a pid namespace waits for its init, which is gone only after every process of
    // the namespace is; so the init is killed first and the wrapper is left to see it go.
    if (kind_ == Command::Kind::namespaced && kill_children()) {
      pollfd ended{handle_.get(), POLLIN, 0};
      if (::poll(&ended, 1, kGraceMs) > 0) {
        wait();
        ::kill(-pid_, SIGKILL);
        return;
      }
    }
    ::kill(-pid_, SIGKILL);
    wait();
  }

 private:
  bool kill_children() const {
    const auto text = sys::read_file(fmt::format("/proc/{0}/task/{0}/children", pid_), 4096);
    if (!text) return false;
    std::istringstream list(*text);
    bool any = false;
    for (pid_t child = 0; list >> child;) any = ::kill(child, SIGKILL) == 0 || any;
    return any;
  }

  pid_t pid_;
  Fd handle_;
  Command::Kind kind_;
  bool reaped_ = false;
};

// Cuts standard output into lines and keeps the end of standard error.
class Output {
 public:
  explicit Output(const Command& command) : command_(command) {
    if (!command.log_path.empty()) log_.open(command.log_path, std::ios::app | std::ios::binary);
  }

  void out(std::string_view bytes) {
    line_ += bytes;
    std::size_t end = 0;
    while ((end = line_.find('\n')) != std::string::npos) {
      if (command_.on_line) command_.on_line(std::string_view(line_).substr(0, end));
      line_.erase(0, end + 1);
    }
  }
  void err(std::string_view bytes) {
    // A full disk loses the log too; the tail in memory still tells what happened.
    log_ << bytes << std::flush;
    const std::size_t seen = std::min<std::size_t>(tail_.size(), 64);
    tail_ += bytes;
    disk_full_ =
        disk_full_ ||
        complains_about_space(std::string_view(tail_).substr(tail_.size() - bytes.size() - seen));
    if (tail_.size() > kTailBytes) tail_.erase(0, tail_.size() - kTailBytes);
  }
  Exit finish(int code) { return {code, std::move(tail_), disk_full_}; }

 private:
  const Command& command_;
  std::ofstream log_;
  std::string line_;
  std::string tail_;
  bool disk_full_ = false;
};

Result<pid_t> start(const Command& command, int out, int err) {
  const std::string program = find_program(command.argv.front());
  if (program.empty()) {
    return fail(ErrorCode::not_found, fmt::format("there is no program {}", command.argv.front()));
  }
  std::vector<char*> argv;
  for (const std::string& word : command.argv) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const FileActions actions(out, err);
  const Attributes attributes;
  pid_t pid = -1;
  const int error =
      ::posix_spawn(&pid, program.c_str(), actions.get(), attributes.get(), argv.data(), environ);
  if (error != 0) return fail(Error{ErrorCode::io, Step::none, error, "cannot start " + program});
  return pid;
}

// Feeds one readable stream on; false once it has ended.
Result<bool> drain(int fd, std::span<std::byte> buffer, Output& output,
                   void (Output::*sink)(std::string_view)) {
  const auto got = TRY(sys::read_some(fd, buffer));
  if (got.size == 0) return got.would_block;
  (output.*sink)({reinterpret_cast<const char*>(buffer.data()), got.size});
  return true;
}

}  // namespace

std::string find_program(std::string_view name) {
  if (name.find('/') != std::string_view::npos) return std::string(name);
  const char* path = std::getenv("PATH");
  std::istringstream places(fmt::format("{}:{}", path == nullptr ? "" : path, kSearch));
  for (std::string place; std::getline(places, place, ':');) {
    if (!place.starts_with('/')) continue;
    std::string candidate = fmt::format("{}/{}", place, name);
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return {};
}

Result<Exit> run(const Command& command) {
  sys::Pipe out = TRY(sys::pipe());
  sys::Pipe err = TRY(sys::pipe());
  const pid_t pid = TRY(start(command, out.write.get(), err.write.get()));
  Child child(pid, Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))), command.kind);
  out.write.reset();
  err.write.reset();

  Output output(command);
  std::vector<std::byte> buffer(64U << 10U);
  bool open_out = true;
  bool open_err = true;
  // A grandchild in the background may hold a stream open; the program's own end is what counts
  // when both streams stay silent after it.
  for (bool ended = false; open_out || open_err || !ended;) {
    std::array<pollfd, 4> polled = {{{open_out ? out.read.get() : -1, POLLIN, 0},
                                     {open_err ? err.read.get() : -1, POLLIN, 0},
                                     {ended ? -1 : child.handle(), POLLIN, 0},
                                     {command.interrupt_fd, POLLIN, 0}}};
    const int ready = ::poll(polled.data(), polled.size(), ended ? 200 : -1);
    if (ready == 0) break;
    if (ready < 0) continue;
    if (polled[3].revents != 0) {
      if (command.on_interrupt) command.on_interrupt();
      child.end();
      return fail(ErrorCode::cancelled, "interrupted");
    }
    if (polled[0].revents != 0) open_out = TRY(drain(out.read.get(), buffer, output, &Output::out));
    if (polled[1].revents != 0) open_err = TRY(drain(err.read.get(), buffer, output, &Output::err));
    ended = ended || polled[2].revents != 0;
  }
  return output.finish(child.wait());
}

}  // namespace hutch::image
