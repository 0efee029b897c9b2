#include "cli/private_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string_view>
#include <utility>

#include "base/sys.h"
#include "base/units.h"
#include "cli/exit_code.h"
#include "isolation/launch.h"

namespace hutch::cli {
namespace {

// What a failing server says last fits in here; everything before it is its log.
constexpr off_t kLastWordsBytes = 8_KiB;

tl::unexpected<Error> failed(const std::string& what) {
  return fail(sys::last_error(ErrorCode::internal, Step::none, "cannot " + what));
}

// The child, from the fork to the end of its server.
[[noreturn]] void live(ServerLife life, Serve serve, const Fd& log, const StopSignals& signals) {
  ::setsid();
  signals.give_back();
  const Result<Fd> nothing = sys::open("/dev/null", O_RDWR);
  if (!nothing) ::_exit(static_cast<int>(ExitCode::internal));
  ::dup2(nothing->get(), STDIN_FILENO);
  ::dup2(nothing->get(), STDOUT_FILENO);
  ::dup2(log.get(), STDERR_FILENO);
  const int exit_code = serve(std::move(life));
  static_cast<void>(std::fflush(stderr));
  ::_exit(exit_code);
}

}  // namespace

Result<PrivateServer> PrivateServer::start(config::Config config, Serve serve,
                                           const StopSignals& signals) {
  config.pool.target = 0;
  config.pool.ceiling = 1;
  config.runs.max = 1;
  // One run that its own user asked for, who is told which limits are not held.
  if (config.waive.empty()) config.waive = {"memory", "processes", "cpus"};
  auto [ours, theirs] = TRY(sys::socket_pair(SOCK_STREAM));
  Fd log(::memfd_create("hutch-run-log", MFD_CLOEXEC));
  if (!log) return failed("make a file in memory");
  const long pid = isolation::fork_process();
  if (pid < 0) return failed("start a server for this run");
  if (pid == 0) {
    ours.reset();
    live({.config = std::move(config), .connection = std::move(theirs)}, serve, log, signals);
  }
  return PrivateServer(static_cast<pid_t>(pid), std::move(ours), std::move(log));
}

std::string PrivateServer::wait(std::chrono::milliseconds patience, const StopSignals& signals) {
  socket_.reset();
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  std::array<pollfd, 2> on{pollfd{process.get(), POLLIN, 0}, pollfd{signals.fd(), POLLIN, 0}};
  if (::poll(on.data(), on.size(), static_cast<int>(patience.count())) < 1 || on[0].revents == 0) {
    return "the server of this run is still taking it down, and ends by itself";
  }
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED);
  if (info.si_code != CLD_EXITED) {
    return fmt::format("the server of this run was ended by signal {}", info.si_status);
  }
  return info.si_status == 0 ? std::string() : last_words();
}

std::string PrivateServer::end_of_log() const {
  const off_t size = ::lseek(log_.get(), 0, SEEK_END);
  std::string text(static_cast<std::size_t>(std::min(size, kLastWordsBytes)), '\0');
  const off_t from = size - static_cast<off_t>(text.size());
  const ssize_t got = ::pread(log_.get(), text.data(), text.size(), from);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

bool PrivateServer::is_unpacking() const {
  const std::string text = end_of_log();
  const std::size_t last = text.rfind("\n{");
  return text.find(R"("event":"image_unpack")", last == std::string::npos ? 0 : last) !=
         std::string::npos;
}

std::string PrivateServer::last_words() const {
  const std::string text = end_of_log();
  constexpr std::string_view kMark = "hutch: ";
  std::size_t at = text.rfind("\n" + std::string(kMark));
  at = at == std::string::npos ? (text.starts_with(kMark) ? 0 : at) : at + 1;
  if (at == std::string::npos) return "the server of this run ended before the run did";
  const std::size_t start = at + kMark.size();
  return text.substr(start, text.find('\n', start) - start);
}

}  // namespace hutch::cli
