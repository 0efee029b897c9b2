#include "isolation/cgroup_kernel.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <set>

#include "base/sys.h"

namespace hutch::isolation {
namespace {

constexpr std::size_t kFileBytesMax = 1U << 20U;
constexpr int kKillRoundsMax = 8;

// Calls `line` with each line of `text`.
template <class Visit>
void for_each_line(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    visit(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

template <class Number>
Number number_in(std::string_view text) {
  Number number = 0;
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

Status CgroupKernel::make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) == 0 || sys::last_errno() == EEXIST) return {};
  return fail(sys::last_error(ErrorCode::io, Step::none, "cannot make the group " + path));
}

Status CgroupKernel::remove_directory(const std::string& path) {
  if (::rmdir(path.c_str()) == 0 || sys::last_errno() == ENOENT) return {};
  const ErrorCode code = sys::last_errno() == EBUSY ? ErrorCode::busy : ErrorCode::io;
  return fail(sys::last_error(code, Step::none, "cannot remove the group " + path));
}

Result<std::vector<std::string>> CgroupKernel::subdirectories(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(path, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (entry->is_directory(error)) names.push_back(entry->path().filename().string());
  }
  if (error) {
    return fail(Error{ErrorCode::io, Step::none, error.value(), "cannot list the group " + path});
  }
  std::ranges::sort(names);
  return names;
}

bool CgroupKernel::exists(const std::string& path) { return sys::exists(path); }

Result<std::string> CgroupKernel::read(const std::string& path) {
  return sys::read_file(path, kFileBytesMax);
}

Status CgroupKernel::write(const std::string& path, std::string_view text) {
  return sys::write_control(path, text);
}

Status CgroupKernel::kill_member(const std::string& procs_path, pid_t pid) {
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process) {
    if (sys::last_errno() == ESRCH) return {};
    return fail(sys::last_error(ErrorCode::io, Step::kill_tree, "cannot open a process"));
  }
  // The descriptor is fixed now: if the number is still a member, it is the member we hold.
  const std::vector<pid_t> members = parse_members(TRY(read(procs_path)));
  if (std::ranges::find(members, pid) == members.end()) return {};
  if (::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0) == 0 ||
      sys::last_errno() == ESRCH) {
    return {};
  }
  return fail(sys::last_error(ErrorCode::io, Step::kill_tree, "cannot kill a process"));
}

std::vector<pid_t> parse_members(std::string_view text) {
  std::vector<pid_t> members;
  for_each_line(text, [&](std::string_view line) {
    const pid_t pid = number_in<pid_t>(line);
    if (pid > 0) members.push_back(pid);
  });
  return members;
}

std::uint64_t parse_counter(std::string_view text, std::string_view key) {
  std::uint64_t value = 0;
  for_each_line(text, [&](std::string_view line) {
    const std::size_t space = line.find(' ');
    if (space == key.size() && line.starts_with(key)) {
      value = number_in<std::uint64_t>(line.substr(space + 1));
    }
  });
  return value;
}

Status kill_members(CgroupKernel& kernel, const std::vector<std::string>& groups) {
  std::set<pid_t> signalled;
  Status result;
  for (int round = 0; round < kKillRoundsMax; ++round) {
    bool found = false;
    for (const std::string& group : groups) {
      const std::string procs = group + "/cgroup.procs";
      const auto text = kernel.read(procs);
      if (!text) {
        if (text.error().code != ErrorCode::not_found && result) result = fail(text.error());
        continue;
      }
      for (const pid_t pid : parse_members(*text)) {
        if (!signalled.insert(pid).second) continue;
        found = true;
        const auto killed = kernel.kill_member(procs, pid);
        // The others must die all the same; the first failure is what is reported.
        if (!killed && result) result = killed;
      }
    }
    if (!found) break;
  }
  return result;
}

}  // namespace hutch::isolation
