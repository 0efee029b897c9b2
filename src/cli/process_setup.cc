#include "cli/process_setup.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "base/sys.h"

namespace hutch::cli {
namespace {

constexpr rlim_t kDescriptorsWanted = 65'536;

}  // namespace

Status open_standard_descriptors() {
  for (int standard = 0; standard <= 2; ++standard) {
    if (::fcntl(standard, F_GETFD) >= 0) continue;
    // The lowest free number is the one that is missing. It must outlive this function: a listener
    // that got number 1 would be sent the ready line.
    Fd filler = TRY(sys::open("/dev/null", O_RDWR));
    static_cast<void>(filler.release());
  }
  return {};
}

Status set_process_up(const Fd& kept) {
  ::umask(S_IWGRP | S_IWOTH);
  // Before the first line of the log, which nobody may be reading.
  std::signal(SIGPIPE, SIG_IGN);
  TRY(open_standard_descriptors());
  const unsigned after = kept ? static_cast<unsigned>(kept.get()) + 1 : 3;
  if (after > 4) ::close_range(3, after - 2, 0);
  ::close_range(after, ~0U, 0);
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < kDescriptorsWanted) {
    files.rlim_cur = std::min(files.rlim_max, kDescriptorsWanted);
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  return {};
}

void survive_memory_shortage() {
  // Not being allowed to is what `doctor` warns of; the server works without.
  ignore_error(sys::write_control("/proc/self/oom_score_adj", "-500"));
}

}  // namespace hutch::cli
