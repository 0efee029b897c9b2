// Control groups, version 2: one hierarchy, one directory for each sandbox, controllers handed down
// from parent to child.
#include <sys/inotify.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/sys.h"
#include "isolation/cgroup.h"

namespace hutch::isolation {
namespace {

struct Controller {
  const char* name;
  const char* limit;  // the limit of ours that needs it
  const char* file;
};

constexpr std::array<Controller, 3> kControllers{{
    {"memory", "memory", "memory.max"},
    {"pids", "processes", "pids.max"},
    {"cpu", "cpus", "cpu.max"},
}};

Status with_step(Status status, Step step) {
  if (status) return status;
  Error error = std::move(status).error();
  error.step = step;
  return fail(std::move(error));
}

class CgroupV2 final : public Cgroup {
 public:
  // `held`: the limits that the tree has found to hold, by name; those have to be set.
  CgroupV2(CgroupKernel& kernel, std::string directory, std::vector<std::string> held = {})
      : kernel_(kernel), directory_(std::move(directory)), held_(std::move(held)) {}

  ~CgroupV2() override {
    if (!removed_) ignore_error(CgroupV2::remove());  // the next sweep finds what is left
  }

  Status make() { return with_step(kernel_.make_directory(directory_), Step::cgroup_create); }

  Status limit(const CgroupLimits& limits) {
    // What is not held is set all the same where its file is there.
    if (holds("memory") || kernel_.exists(file("memory.max"))) {
      TRY(set("memory.max", std::to_string(limits.memory_bytes)));
      // Absent where the kernel has no swap support at all.
      TRY(set_if_there("memory.swap.max", "0"));
      // A program of several processes dies as a whole: half of one gives wrong answers.
      TRY(set("memory.oom.group", "1"));
    }
    if (holds("processes") || kernel_.exists(file("pids.max"))) {
      TRY(set("pids.max", std::to_string(limits.processes)));
    }
    if (holds("cpus") || kernel_.exists(file("cpu.max"))) {
      TRY(set("cpu.max",
              std::to_string(limits.cpu_quota_us) + " " + std::to_string(limits.cpu_period_us)));
    }
    return {};
  }

  Status attach(pid_t pid) override {
    return with_step(kernel_.write(file("cgroup.procs"), std::to_string(pid)), Step::cgroup_attach);
  }

  Status raise_memory(std::uint64_t bytes) override {
    return set_if_there("memory.max", std::to_string(bytes));
  }

  Status kill_all() override {
    const std::string kill = file("cgroup.kill");
    if (kernel_.exists(kill)) return with_step(kernel_.write(kill, "1"), Step::kill_tree);
    // Before Linux 5.14. Frozen groups of v2 do let their members be killed, but a member that is
    // killed while it is frozen leaves the freezer by itself, so no thawing is owed; it is done all
    // the same for what cannot die at once.
    ignore_error(kernel_.write(file("cgroup.freeze"), "1"));
    const Status killed = kill_members(kernel_, {directory_});
    ignore_error(kernel_.write(file("cgroup.freeze"), "0"));
    return with_step(killed, Step::kill_tree);
  }

  Result<bool> populated() override {
    const auto events = kernel_.read(file("cgroup.events"));
    if (!events && events.error().code == ErrorCode::not_found) return false;
    if (!events) return fail(events.error());
    return parse_counter(*events, "populated") != 0;
  }

  CgroupCounters counters() override {
    return {
        .memory_kills = parse_counter(text("memory.events"), "oom_kill"),
        .processes_denied = parse_counter(text("pids.events"), "max"),
        .memory_peak_bytes = parse_counter("n " + text("memory.peak"), "n"),
        .cpu_us = parse_counter(text("cpu.stat"), "usage_usec"),
    };
  }

  Result<Fd> watch_memory_kills() override {
    if (!kernel_.exists(file("memory.events"))) return watch_nothing();
    Fd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (!watch || ::inotify_add_watch(watch.get(), file("memory.events").c_str(), IN_MODIFY) < 0) {
      return fail(sys::last_error(ErrorCode::io, Step::cgroup_limits,
                                  "cannot watch " + file("memory.events")));
    }
    return watch;
  }

  Status remove() override {
    Status gone = with_step(kernel_.remove_directory(directory_), Step::cgroup_remove);
    removed_ = gone.has_value();
    return gone;
  }

 private:
  bool holds(std::string_view limit) const {
    return std::ranges::find(held_, limit) != held_.end();
  }

  std::string file(std::string_view name) const { return directory_ + "/" + std::string(name); }

  std::string text(std::string_view name) {
    return kernel_.read(file(name)).value_or(std::string());
  }

  Status set(std::string_view name, std::string_view value) {
    return with_step(kernel_.write(file(name), value), Step::cgroup_limits);
  }

  Status set_if_there(std::string_view name, std::string_view value) {
    if (!kernel_.exists(file(name))) return {};
    return set(name, value);
  }

  CgroupKernel& kernel_;
  std::string directory_;
  std::vector<std::string> held_;
  bool removed_ = false;
};

class CgroupTreeV2 final : public CgroupTree {
 public:
  CgroupTreeV2(CgroupKernel& kernel, const CgroupLayout& layout, const CgroupTreeOptions& options)
      : CgroupTree(options.waived),
        kernel_(kernel),
        root_(layout.v2 + "/hutch-" + options.instance) {
    std::string wanted;
    for (const Controller& controller : kControllers) {
      if (std::ranges::find(layout.v2_controllers, controller.name) ==
          layout.v2_controllers.end()) {
        unenforced_.push_back({controller.limit, std::string("the controller ") + controller.name +
                                                     " is not handed down to our own group " +
                                                     layout.v2});
      } else {
        wanted += std::string(wanted.empty() ? "+" : " +") + controller.name;
      }
    }
    const Status ready = prepare(layout.v2, wanted, options);
    for (const Controller& controller : kControllers) {
      if (!holds(*this, controller.limit)) continue;
      if (!ready) {
        unenforced_.push_back({controller.limit, describe(ready.error())});
      } else if (!kernel_.exists(root_ + "/" + controller.file)) {
        unenforced_.push_back(
            {controller.limit, std::string("the kernel has no ") + controller.file});
      }
    }
    if (holds(*this, "memory") && options.swap_bytes > 0 &&
        !kernel_.exists(root_ + "/memory.swap.max")) {
      unenforced_.push_back(
          {"memory", "there is swap, and the kernel does not count it: turn swap off"});
    }
  }

  ~CgroupTreeV2() override {
    ignore_error(CgroupTreeV2::remove());
  }  // the next start takes it over

  Result<std::unique_ptr<Cgroup>> create(const std::string& name,
                                         const CgroupLimits& limits) override {
    TRY(refuse_unenforced(refused()));
    TRY(check_cgroup_name(name));
    TRY(check_cgroup_limits(limits));
    std::vector<std::string> held;
    for (const Controller& controller : kControllers) {
      if (holds(*this, controller.limit)) held.emplace_back(controller.limit);
    }
    // Only where there never was one: a tree that is gone takes limits along that are promised.
    if (held.empty() && !kernel_.exists(root_)) return make_no_cgroup();
    auto group = std::make_unique<CgroupV2>(kernel_, root_ + "/" + name, std::move(held));
    TRY(group->make());
    TRY(group->limit(limits));
    return group;
  }

  Result<std::size_t> sweep(std::string_view prefix) override {
    if (!kernel_.exists(root_)) return std::size_t{0};
    std::size_t left = 0;
    for (const std::string& name : TRY(kernel_.subdirectories(root_))) {
      if (!name.starts_with(prefix)) continue;
      CgroupV2 group(kernel_, root_ + "/" + name);
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
    return with_step(kernel_.remove_directory(root_), Step::cgroup_remove);
  }

  std::vector<std::string> directories() const override { return {root_}; }

 private:
  // Controllers go down one level at a time: from our own group to the tree, from the tree to the
  // groups of sandboxes.
  Status prepare(const std::string& own, const std::string& wanted,
                 const CgroupTreeOptions& options) {
    if (wanted.empty()) return {};
    TRY(hand_down(own, wanted, options));
    TRY(kernel_.make_directory(root_));
    return kernel_.write(root_ + "/cgroup.subtree_control", wanted);
  }

  Status hand_down(const std::string& own, const std::string& wanted,
                   const CgroupTreeOptions& options) {
    const std::string control = own + "/cgroup.subtree_control";
    Status direct = kernel_.write(control, wanted);
    if (direct || direct.error().sys_errno != EBUSY) return direct;
    // Our own group holds processes: at best only ours, which then make room.
    const std::string aside = root_ + "-server";
    TRY(kernel_.make_directory(aside));
    for (const pid_t pid : options.own_processes) {
      TRY(kernel_.write(aside + "/cgroup.procs", std::to_string(pid)));
    }
    Status again = kernel_.write(control, wanted);
    if (again || again.error().sys_errno != EBUSY) return again;
    Error error = again.error();
    error.message = own + " holds processes that are not ours, and so cannot hand controllers " +
                    "down: start the server in a group of its own (a systemd unit with " +
                    "Delegate=yes, or systemd-run --scope -p Delegate=yes)";
    return fail(std::move(error));
  }

  CgroupKernel& kernel_;
  std::string root_;
};

}  // namespace

std::unique_ptr<CgroupTree> open_cgroup_tree_v2(CgroupKernel& kernel, const CgroupLayout& layout,
                                                const CgroupTreeOptions& options) {
  return std::make_unique<CgroupTreeV2>(kernel, layout, options);
}

}  // namespace hutch::isolation
