#include "warden/pid_of.h"

#include <cstdio>

#include "base/sys.h"

namespace hutch::warden {

Result<pid_t> pid_of(const Fd& pidfd) {
  const std::string text =
      TRY(sys::read_file("/proc/self/fdinfo/" + std::to_string(pidfd.get()), 4096));
  const std::size_t at = text.find("Pid:");
  int pid = -1;
  if (at == std::string::npos || std::sscanf(text.c_str() + at, "Pid: %d", &pid) != 1 || pid <= 0) {
    return fail(ErrorCode::sandbox_lost, Step::cgroup_attach, "the process has ended already");
  }
  return pid;
}

}  // namespace hutch::warden
