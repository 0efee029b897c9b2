// Control groups, version 1: each controller has a hierarchy of its own, so a sandbox's group is up
// to five directories of the same name.
#include <fcntl.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/sys.h"
#include "isolation/cgroup.h"

namespace hutch::isolation {
namespace {

// In the order of attaching: memory first, because charges stay where they were made.
constexpr std::array<std::string_view, 5> kControllers{"memory", "pids", "cpu", "cpuacct",
                                                       "freezer"};

// Socket buffers have a budget of their own in v1, and none until one is set: a program could park
// gigabytes in its loopback connections. Part of the memory limit, on top of it.
constexpr std::uint64_t kSocketMemoryShare = 8;

using Directories = std::map<std::string, std::string, std::less<>>;  // controller -> directory

Status with_step(Status status, Step step) {
  if (status) return status;
  Error error = std::move(status).error();
  error.step = step;
  return fail(std::move(error));
}

class CgroupV1 final : public Cgroup {
 public:
  CgroupV1(CgroupKernel& kernel, Directories directories)
      : kernel_(kernel), directories_(std::move(directories)) {
    for (const std::string_view controller : kControllers) {
      const auto found = directories_.find(controller);
      if (found == directories_.end()) continue;
      if (std::ranges::find(distinct_, found->second) == distinct_.end()) {
        distinct_.push_back(found->second);
      }
    }
  }

  ~CgroupV1() override {
    if (!removed_) ignore_error(CgroupV1::remove());  // the next sweep finds what is left
  }

  Status make() {
    for (const std::string& directory : distinct_) {
      TRY(with_step(kernel_.make_directory(directory), Step::cgroup_create));
    }
    return {};
  }

  Status limit(const CgroupLimits& limits) {
    if (directories_.contains("memory")) TRY(limit_memory(limits.memory_bytes));
    if (directories_.contains("pids")) {
      TRY(set("pids", "pids.max", std::to_string(limits.processes)));
    }
    // A kernel may have the controller without the quota.
    if (kernel_.exists(path("cpu", "cpu.cfs_quota_us"))) {
      TRY(set("cpu", "cpu.cfs_period_us", std::to_string(limits.cpu_period_us)));
      TRY(set("cpu", "cpu.cfs_quota_us", std::to_string(limits.cpu_quota_us)));
    }
    return {};
  }

  Status attach(pid_t pid) override {
    for (const std::string& directory : distinct_) {
      TRY(with_step(kernel_.write(directory + "/cgroup.procs", std::to_string(pid)),
                    Step::cgroup_attach));
    }
    return {};
  }

  // The limit of both together comes first: that of memory alone may not be above it.
  Status raise_memory(std::uint64_t bytes) override {
    if (!directories_.contains("memory")) return {};
    const std::string memory = std::to_string(bytes);
    TRY(set_if_there("memory", "memory.memsw.limit_in_bytes", memory));
    return set("memory", "memory.limit_in_bytes", memory);
  }

  Status kill_all() override {
    // Frozen members cannot fork, so one round finds them all. They also cannot die: the group is
    // thawed whatever happened, or it would stay as it is for ever.
    const bool freezes = directories_.contains("freezer");
    Status frozen;
    if (freezes) frozen = kernel_.write(path("freezer", "freezer.state"), "FROZEN");
    const Status killed = kill_members(kernel_, distinct_);
    Status thawed;
    if (freezes) thawed = kernel_.write(path("freezer", "freezer.state"), "THAWED");
    if (!thawed && thawed.error().code != ErrorCode::not_found) {
      return with_step(thawed, Step::kill_tree);
    }
    // Not frozen means that forks can slip through, not that nothing was killed.
    ignore_error(frozen);
    return with_step(killed, Step::kill_tree);
  }

  Result<bool> populated() override {
    for (const std::string& directory : distinct_) {
      const auto members = kernel_.read(directory + "/cgroup.procs");
      if (!members && members.error().code == ErrorCode::not_found) continue;
      if (!members) return fail(members.error());
      if (!members->empty()) return true;
    }
    return false;
  }

  CgroupCounters counters() override {
    return {
        .memory_kills = parse_counter(text("memory", "memory.oom_control"), "oom_kill"),
        .processes_denied = parse_counter(text("pids", "pids.events"), "max"),
        .memory_peak_bytes = number("memory", "memory.max_usage_in_bytes"),
        .cpu_us = number("cpuacct", "cpuacct.usage") / 1000,
    };
  }

  Result<Fd> watch_memory_kills() override {
    if (!directories_.contains("memory")) return watch_nothing();
    Fd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!event) {
      return fail(sys::last_error(ErrorCode::io, Step::cgroup_limits, "cannot make an eventfd"));
    }
    // The kernel keeps the event registered by itself; the file is needed for the moment only.
    const Fd control = TRY(sys::open(path("memory", "memory.oom_control"), O_RDONLY));
    TRY(with_step(kernel_.write(path("memory", "cgroup.event_control"),
                                std::to_string(event.get()) + " " + std::to_string(control.get())),
                  Step::cgroup_limits));
    return event;
  }

  Status remove() override {
    Status result;
    for (const std::string& directory : distinct_) {
      const Status gone = kernel_.remove_directory(directory);
      if (!gone && result) result = with_step(gone, Step::cgroup_remove);
    }
    removed_ = result.has_value();
    return result;
  }

 private:
  Status limit_memory(std::uint64_t bytes) {
    const std::string memory = std::to_string(bytes);
    TRY(set("memory", "memory.limit_in_bytes", memory));
    // Memory and swap together; the order matters, it may not be below the limit of memory alone.
    TRY(set_if_there("memory", "memory.memsw.limit_in_bytes", memory));
    TRY(set_if_there("memory", "memory.kmem.tcp.limit_in_bytes",
                     std::to_string(bytes / kSocketMemoryShare)));
    return keep_memory_killer();
  }

  std::string path(std::string_view controller, std::string_view file) const {
    const auto found = directories_.find(controller);
    return found == directories_.end() ? std::string() : found->second + "/" + std::string(file);
  }

  std::string text(std::string_view controller, std::string_view file) {
    const std::string where = path(controller, file);
    if (where.empty()) return {};
    return kernel_.read(where).value_or(std::string());
  }

  std::uint64_t number(std::string_view controller, std::string_view file) {
    return parse_counter("n " + text(controller, file), "n");
  }

  Status set(std::string_view controller, std::string_view file, std::string_view value) {
    return with_step(kernel_.write(path(controller, file), value), Step::cgroup_limits);
  }

  Status set_if_there(std::string_view controller, std::string_view file, std::string_view value) {
    if (!kernel_.exists(path(controller, file))) return {};
    return set(controller, file, value);
  }

  // A parent may have switched the killer off, and groups inherit that: a program at its limit
  // would then hang instead of dying.
  Status keep_memory_killer() {
    if (parse_counter(text("memory", "memory.oom_control"), "oom_kill_disable") == 0) return {};
    return set("memory", "memory.oom_control", "0");
  }

  CgroupKernel& kernel_;
  Directories directories_;
  std::vector<std::string> distinct_;
  bool removed_ = false;
};

class CgroupTreeV1 final : public CgroupTree {
 public:
  CgroupTreeV1(CgroupKernel& kernel, const CgroupLayout& layout, const CgroupTreeOptions& options)
      : CgroupTree(options.waived), kernel_(kernel) {
    for (const std::string_view controller : kControllers) open(controller, layout, options);
    require("memory", "memory", "memory.limit_in_bytes");
    require("processes", "pids", "pids.max");
    require("cpus", "cpu", "cpu.cfs_quota_us");
    const auto memory = roots_.find("memory");
    if (memory != roots_.end() && options.swap_bytes > 0 &&
        !kernel_.exists(memory->second + "/memory.memsw.limit_in_bytes")) {
      unenforced_.push_back({"memory",
                             "there is swap, and the kernel does not count it: turn swap off, or "
                             "boot with swapaccount=1"});
    }
  }

  ~CgroupTreeV1() override {
    ignore_error(CgroupTreeV1::remove());
  }  // the next start takes it over

  Result<std::unique_ptr<Cgroup>> create(const std::string& name,
                                         const CgroupLimits& limits) override {
    TRY(refuse_unenforced(refused()));
    TRY(check_cgroup_name(name));
    TRY(check_cgroup_limits(limits));
    auto group = std::make_unique<CgroupV1>(kernel_, below(name));
    TRY(group->make());
    TRY(group->limit(limits));
    return group;
  }

  Result<std::size_t> sweep(std::string_view prefix) override {
    std::vector<std::string> names;
    for (const std::string& root : directories()) {
      for (std::string& name : TRY(kernel_.subdirectories(root))) {
        if (name.starts_with(prefix)) names.push_back(std::move(name));
      }
    }
    std::ranges::sort(names);
    names.erase(std::ranges::unique(names).begin(), names.end());
    std::size_t left = 0;
    for (const std::string& name : names) {
      CgroupV1 group(kernel_, below(name));
      // What could not be killed shows in the removal.
      ignore_error(group.kill_all());
      if (const auto removed = group.remove(); !removed) {
        if (removed.error().code != ErrorCode::busy) return fail(removed.error());
        ++left;
      }
    }
    return left;
  }

  Status remove() override {
    Status result;
    for (const std::string& root : directories()) {
      const Status gone = kernel_.remove_directory(root);
      if (!gone && result) result = with_step(gone, Step::cgroup_remove);
    }
    return result;
  }

  std::vector<std::string> directories() const override {
    std::vector<std::string> distinct;
    for (const auto& [controller, root] : roots_) {
      if (std::ranges::find(distinct, root) == distinct.end()) distinct.push_back(root);
    }
    return distinct;
  }

 private:
  void open(std::string_view controller, const CgroupLayout& layout,
            const CgroupTreeOptions& options) {
    const auto own = layout.v1.find(std::string(controller));
    if (own == layout.v1.end()) return;
    const std::string root = own->second + "/hutch-" + options.instance;
    if (const auto made = kernel_.make_directory(root); !made) {
      refusals_.emplace(controller, describe(made.error()));
      return;
    }
    roots_.emplace(controller, root);
  }

  void require(const std::string& limit, std::string_view controller, const std::string& file) {
    const auto root = roots_.find(controller);
    if (root == roots_.end()) {
      const auto refusal = refusals_.find(controller);
      unenforced_.push_back({limit, refusal != refusals_.end()
                                        ? refusal->second
                                        : "the controller " + std::string(controller) +
                                              " is not mounted, or not for our own group"});
    } else if (!kernel_.exists(root->second + "/" + file)) {
      unenforced_.push_back({limit, "the kernel has no " + file});
    }
  }

  Directories below(const std::string& name) const {
    Directories directories;
    const std::string suffix = "/" + name;
    for (const auto& [controller, root] : roots_) directories.emplace(controller, root + suffix);
    return directories;
  }

  CgroupKernel& kernel_;
  Directories roots_;
  std::map<std::string, std::string, std::less<>> refusals_;  // controller -> why
};

}  // namespace

std::unique_ptr<CgroupTree> open_cgroup_tree_v1(CgroupKernel& kernel, const CgroupLayout& layout,
                                                const CgroupTreeOptions& options) {
  return std::make_unique<CgroupTreeV1>(kernel, layout, options);
}

}  // namespace hutch::isolation
