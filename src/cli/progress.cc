#include "cli/progress.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <utility>

#include "cli/output.h"

namespace hutch::cli {
namespace {

// What is quicker needs no line that flickers.
constexpr std::chrono::milliseconds kPatience{300};
constexpr std::size_t kColumnsDefault = 80;

bool takes_a_line_back() {
  if (::isatty(STDERR_FILENO) != 1) return false;
  const char* const kind = std::getenv("TERM");
  return kind != nullptr && *kind != '\0' && std::string_view(kind) != "dumb";
}

// Asked each time: a window changes its size. A line that wrapped could not be taken back.
std::size_t columns() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kColumnsDefault;
}

// A terminal that nobody reads would hold us, and signals with us.
bool takes_more() {
  pollfd entry{STDERR_FILENO, POLLOUT, 0};
  return ::poll(&entry, 1, 0) == 1 && (entry.revents & POLLOUT) != 0;
}

}  // namespace

Progress::Progress(const Clock& clock, std::string what, Wanted wanted)
    : clock_(clock),
      what_(std::move(what)),
      start_(clock.mono()),
      shows_(wanted == Wanted::yes && takes_a_line_back()) {}

void Progress::tick() {
  const Nanos since = clock_.mono() - start_;
  if (!shows_ || since < kPatience || !takes_more()) return;
  drawn_ = true;
  const double seconds = std::chrono::duration<double>(since).count();
  const std::string line = fmt::format("{}... {:.1f} s", what_, seconds);
  print_chatter("\r\033[K" + line.substr(0, columns() - 1));
}

void Progress::end() {
  if (std::exchange(drawn_, false)) print_chatter("\r\033[K");
  shows_ = false;
}

}  // namespace hutch::cli
