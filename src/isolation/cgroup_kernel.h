// The kernel as the cgroup code sees it: directories, small files, one signal. Exists so that tests
// can put plain files, failures and recorded kills in its place.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hutch::isolation {

class CgroupKernel {
 public:
  virtual ~CgroupKernel() = default;

  // A directory that is there already is fine.
  virtual Status make_directory(const std::string& path);
  // busy while it has members or groups inside; a directory that is not there is fine.
  virtual Status remove_directory(const std::string& path);
  virtual Result<std::vector<std::string>> subdirectories(const std::string& path);
  virtual bool exists(const std::string& path);
  // At most 1 MiB: a group's list of processes, a mount table.
  virtual Result<std::string> read(const std::string& path);
  virtual Status write(const std::string& path, std::string_view text);
  // SIGKILL for `pid`, provided that it still stands in the list `procs_path`: between reading the
  // list and sending the signal the number may have passed to a stranger.
  virtual Status kill_member(const std::string& procs_path, pid_t pid);
};

// The processes in a cgroup.procs file. Those outside our pid namespace appear there as 0 and are
// left out: no signal of ours reaches them.
std::vector<pid_t> parse_members(std::string_view text);
// The number behind `key` in a "key value" file such as memory.events, blanks between them skipped;
// 0 when it is not there.
std::uint64_t parse_counter(std::string_view text, std::string_view key);

// SIGKILL for every member of the groups, again and again until no new one shows up; gives up after
// a few rounds against a fork bomb that nothing freezes (call it again then).
Status kill_members(CgroupKernel& kernel, const std::vector<std::string>& groups);

}  // namespace hutch::isolation
