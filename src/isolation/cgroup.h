// The control groups of our sandboxes: one tree for the server's life, one group for each sandbox.
// Owns their directories; decides no limit. Nothing here sleeps or waits: what needs time (a group
// that is still busy) is reported, and the caller tries again by its timer.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "isolation/cgroup_kernel.h"
#include "isolation/cgroup_layout.h"

namespace hutch::isolation {

// All greater than 0. Swap is 0.
struct CgroupLimits {
  std::uint64_t memory_bytes = 0;
  std::uint32_t processes = 0;  // threads count
  std::uint64_t cpu_quota_us = 0;
  std::uint64_t cpu_period_us = 100'000;
};

// What a group counted since it was made. 0 for what the kernel does not tell.
struct CgroupCounters {
  std::uint64_t memory_kills = 0;      // processes that the out-of-memory killer ended
  std::uint64_t processes_denied = 0;  // forks refused at the limit
  std::uint64_t memory_peak_bytes = 0;
  std::uint64_t cpu_us = 0;
};

// One sandbox's group. The destructor removes the directories if nothing is in them any more, and
// kills nobody; what it has to leave is found by the next sweep().
class Cgroup {
 public:
  virtual ~Cgroup() = default;

  // Moves a process in; its children are born inside. Before the process touches memory: what is
  // charged elsewhere stays charged there. The first move after some quiet takes milliseconds, so
  // this belongs into the warming of a sandbox, never on a request's path.
  virtual Status attach(pid_t pid) = 0;
  // Another limit of memory, not below the present one.
  virtual Status raise_memory(std::uint64_t bytes) = 0;
  // SIGKILL to every member. They are dead some time after it returns: see populated().
  virtual Status kill_all() = 0;
  virtual Result<bool> populated() = 0;
  // Read them before remove().
  virtual CgroupCounters counters() = 0;
  // Becomes readable when the out-of-memory killer may have been at work (v1: also when the group
  // is removed): drain it, then look at counters(). Non-blocking.
  virtual Result<Fd> watch_memory_kills() = 0;
  // busy while a member lives or dies; call again later. Fine when it is gone already.
  virtual Status remove() = 0;

 protected:
  Cgroup() = default;
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;
};

// A limit that this host cannot hold, by the name the configuration has for it.
struct UnenforcedLimit {
  std::string name;    // "memory", "processes" or "cpus"
  std::string reason;  // for the operator
};

// The parent of all our groups: `<own group>/hutch-<instance>` in each hierarchy. The destructor
// removes it if it is empty.
class CgroupTree {
 public:
  virtual ~CgroupTree() = default;

  // Empty when every limit holds. Otherwise create() refuses, because a sandbox without one of its
  // limits is none, unless the operator has waived each of them.
  const std::vector<UnenforcedLimit>& unenforced() const { return unenforced_; }
  // Those of unenforced() that nobody has waived.
  std::vector<UnenforcedLimit> refused() const;
  // Step::cgroup_create or cgroup_limits say what failed; nothing is left then. `name`: 1 to 64 of
  // a-z, 0-9, "-", "_", unique in the tree.
  virtual Result<std::unique_ptr<Cgroup>> create(const std::string& name,
                                                 const CgroupLimits& limits) = 0;
  // For leftovers of an earlier server of this instance: kills and removes every group whose name
  // begins with `prefix` ("" for all). Returns how many are still there, dying: call again later.
  virtual Result<std::size_t> sweep(std::string_view prefix) = 0;
  virtual Status remove() = 0;
  // The tree's directories: what an operator looks at to count leftovers.
  virtual std::vector<std::string> directories() const = 0;

 protected:
  explicit CgroupTree(std::vector<std::string> waived) : waived_(std::move(waived)) {}
  CgroupTree(const CgroupTree&) = delete;
  CgroupTree& operator=(const CgroupTree&) = delete;

  std::vector<UnenforcedLimit> unenforced_;

 private:
  std::vector<std::string> waived_;
};

struct CgroupTreeOptions {
  std::string instance;  // as a group's name
  // Swap on this host. With swap and without a limit for it, "memory" cannot be enforced.
  std::uint64_t swap_bytes = 0;
  // v2 only: our own processes. A group that hands controllers down may hold no process, so when
  // ours is refused for that reason, these move to a group beside the tree.
  std::vector<pid_t> own_processes;
  // Limits, by their names, that sandboxes may be made without on a host that cannot hold them.
  // What it can hold is held all the same.
  std::vector<std::string> waived;
};

// `kernel` outlives the tree. Fails only when the options are wrong; what the host cannot do is in
// unenforced().
Result<std::unique_ptr<CgroupTree>> open_cgroup_tree(CgroupKernel& kernel,
                                                     const CgroupLayout& layout,
                                                     const CgroupTreeOptions& options);

// The two implementations behind it (cgroup_v1.cc, cgroup_v2.cc).
std::unique_ptr<CgroupTree> open_cgroup_tree_v1(CgroupKernel& kernel, const CgroupLayout& layout,
                                                const CgroupTreeOptions& options);
std::unique_ptr<CgroupTree> open_cgroup_tree_v2(CgroupKernel& kernel, const CgroupLayout& layout,
                                                const CgroupTreeOptions& options);

// A group that is none, where no directory can be made: holds, kills and counts nothing.
std::unique_ptr<Cgroup> make_no_cgroup();
// A descriptor that is never readable: nothing tells about memory here.
Result<Fd> watch_nothing();

// What the implementations share: internal for a name or a limit that makes no sense.
Status check_cgroup_name(std::string_view name);
Status check_cgroup_limits(const CgroupLimits& limits);
// Whether the tree holds the limit of that name.
bool holds(const CgroupTree& tree, std::string_view limit);
// unsupported_host, naming every limit that does not hold.
Status refuse_unenforced(const std::vector<UnenforcedLimit>& unenforced);

}  // namespace hutch::isolation
