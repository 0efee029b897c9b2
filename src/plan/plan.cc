#include "plan/plan.h"

#include <linux/sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>

#include "isolation/act.h"
#include "plan/filter_policy.h"

namespace hutch::plan {
namespace {

using isolation::Action;
using isolation::FilterKind;
using isolation::Op;

constexpr std::int64_t kUser = 1000;  // the program, inside its own user namespace
constexpr int kFirstClosed = 5;       // program and courier keep 0..4, init keeps 3 and 4
constexpr int kZoneFirstClosed = 6;  // the anchor keeps its lifeline, program and report until exec
// What we make ourselves in the scratch file system: its root, five directories, the script.
constexpr std::uint64_t kOwnInodes = 7;
constexpr std::int64_t kScratchFlags = MS_NOSUID | MS_NODEV;

// Files and directories of /proc that tell about the host or reach into it. Empty files and
// directories take their place; entries that this kernel does not have are skipped.
constexpr const char* kMaskedFiles[] = {
    "interrupts",  "kcore",       "keys",          "key-users",   "kmsg",         "kpagecgroup",
    "kpagecount",  "kpageflags",  "latency_stats", "sched_debug", "slabinfo",     "timer_list",
    "timer_stats", "vmallocinfo", "config.gz",     "partitions",  "cmdline",      "kallsyms",
    "iomem",       "ioports",     "modules",       "buddyinfo",   "pagetypeinfo", "diskstats",
    "schedstat",   "softirqs",    "mdstat",        "bootconfig",  "execdomains"};
constexpr const char* kMaskedDirectories[] = {"acpi", "asound", "scsi", "pressure", "driver"};
constexpr const char* kReadOnly[] = {"bus", "fs", "irq", "sys", "sysrq-trigger", "tty", "mtrr"};

Action step(Step name, Op op, std::int64_t a = 0, std::int64_t b = 0, std::int64_t c = 0) {
  return Action{name, op, a, b, c, {}, {}};
}

Action on(Step name, Op op, std::string target, std::string source = {}, std::int64_t a = 0) {
  return Action{name, op, a, 0, 0, std::move(source), std::move(target)};
}

Action directory(Step name, std::string path, std::int64_t mode, std::int64_t owner) {
  return Action{name, Op::make_directory, mode, owner, owner, {}, std::move(path)};
}

// The template's own namespaces: what every sandbox starts from. Runs in the anchor, before its
// exec, with the warden's template mounted at zone_path.
std::vector<Action> zone_actions(const PlanHost& host) {
  const std::string& zone = host.zone_path;
  return {
      step(Step::zone_maps, Op::await_go),
      step(Step::zone_maps, Op::set_identity, 0, 0),
      step(Step::zone_root, Op::make_private),
      // While the host's /dev/null can still be opened.
      step(Step::zone_root, Op::place_descriptors, kZoneFirstClosed),
      // What a namespace copies from a more powerful one is locked in place; a root that can be
      // pivoted to has to be a mount of its own.
      on(Step::zone_root, Op::bind, zone, zone, 1),
      // Only while the host's whole /proc is still visible does the kernel allow a new one.
      on(Step::zone_proc, Op::mount_proc, zone + "/proc", ""),
      on(Step::zone_pivot, Op::enter_root, zone),
      step(Step::zone_pivot, Op::detach_old_root),
      on(Step::zone_root, Op::set_hostname, "", "sandbox"),
  };
}

std::vector<Action> home_link_actions(const PlanSpec& spec) {
  std::vector<Action> list;
  std::vector<std::string> made;
  for (const auto& [path, target] : spec.home_links) {
    for (std::size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1)) {
      const std::string parent = "/S/home/" + path.substr(0, at);
      if (std::find(made.begin(), made.end(), parent) != made.end()) continue;
      list.push_back(directory(Step::home_links, parent, 0755, kUser));
      made.push_back(parent);
    }
    list.push_back(on(Step::home_links, Op::make_symlink, "/S/home/" + path, target));
  }
  return list;
}

void add_scratch(const PlanSpec& spec, std::vector<Action>* list) {
  const std::vector<Action> links = home_link_actions(spec);
  const std::string options =
      "size=" + std::to_string(spec.disk_bytes) +
      ",nr_inodes=" + std::to_string(spec.inodes + kOwnInodes + links.size()) + ",mode=0755";
  list->push_back(on(Step::scratch_mount, Op::mount_tmpfs, "/S", options, kScratchFlags));
  list->push_back(directory(Step::scratch_dirs, "/S/work", 0755, kUser));
  list->push_back(directory(Step::scratch_dirs, "/S/home", 0755, kUser));
  list->push_back(directory(Step::scratch_dirs, "/S/tmp", 01777, 0));
  list->push_back(directory(Step::scratch_dirs, "/S/run", 01777, 0));
  list->push_back(directory(Step::scratch_dirs, "/S/run/code", 0755, kUser));
  list->insert(list->end(), links.begin(), links.end());
  list->push_back(on(Step::scratch_binds, Op::bind, "/R/work", "/S/work"));
  list->push_back(on(Step::scratch_binds, Op::bind, "/R/home/sandbox", "/S/home"));
  list->push_back(on(Step::scratch_binds, Op::bind, "/R/tmp", "/S/tmp"));
  list->push_back(on(Step::scratch_binds, Op::bind, "/R/run", "/S/run"));
  list->push_back(on(Step::shm_mount, Op::mount_tmpfs, "/R/dev/shm",
                     "size=" + std::to_string(spec.shm_bytes) + ",nr_inodes=4096,mode=1777",
                     kScratchFlags));
}

void add_proc(const Plan& plan, std::vector<Action>* list) {
  // Other users' processes, init among them, are not even listed.
  list->push_back(on(Step::proc_mount, Op::mount_proc, "/R/proc", "hidepid=invisible"));
  // Before /proc/sys turns read-only: nothing inside may make another user namespace, or watch the
  // files of the image, which are everybody's: their events tell what other sandboxes read.
  const std::pair<const char*, const char*> limits[] = {
      {"max_user_namespaces", "0"}, {"max_inotify_instances", "0"}, {"max_inotify_watches", "0"}};
  for (const auto& [name, value] : limits) {
    list->push_back(
        on(Step::user_limits, Op::write_control, std::string("/R/proc/sys/user/") + name, value));
  }
  for (const char* name : kMaskedFiles) {
    list->push_back(
        on(Step::proc_mask, Op::bind_optional, std::string("/R/proc/") + name, "/E/empty"));
  }
  for (const char* name : kMaskedDirectories) {
    list->push_back(
        on(Step::proc_mask, Op::bind_optional, std::string("/R/proc/") + name, "/E/nothing"));
  }
  for (const char* name : kReadOnly) {
    list->push_back(on(Step::proc_readonly, Op::bind_readonly, std::string("/R/proc/") + name));
  }
  for (const auto& [name, content] : plan.figures) {
    list->push_back(on(Step::proc_figures, Op::bind, "/R/proc/" + name, "/E/" + name));
  }
}

// Privileges go in this order: everything that needs them first, then the bounding set (which needs
// CAP_SETPCAP), the identity, the capabilities themselves, and last what can never be undone.
std::vector<Action> init_actions(const PlanSpec& spec, const Plan& plan) {
  std::vector<Action> list = {
      // A process group shared with anybody outside could be signalled from inside: kill(0) knows
      // nothing of pid namespaces.
      step(Step::init_session, Op::session),
      step(Step::init_go, Op::await_go),
      // After the cgroup is joined, so that /proc/self/cgroup shows its root.
      step(Step::cgroup_namespace, Op::unshare, CLONE_NEWCGROUP),
      step(Step::identity_root, Op::set_identity, 0, 0),
      on(Step::root_bind, Op::bind, "/R", "/R", 1),
  };
  add_scratch(spec, &list);
  add_proc(plan, &list);
  const std::vector<Action> rest = {
      on(Step::pivot, Op::enter_root, "/R"),
      step(Step::old_root_detach, Op::detach_old_root),
      on(Step::hostname, Op::set_hostname, "", "sandbox"),
      on(Step::work_open, Op::open_directory, kWorkDirectory),
      step(Step::descriptors, Op::place_descriptors, kFirstClosed),
      step(Step::bounding_set, Op::drop_bounding_set),
      step(Step::identity_init, Op::set_identity, 0, 0),
      step(Step::capabilities, Op::drop_capabilities),
      step(Step::no_new_privs, Op::no_new_privs),
      step(Step::not_dumpable, Op::set_dumpable, 0),
      step(Step::init_filter, Op::install_filter, static_cast<std::int64_t>(FilterKind::init)),
  };
  list.insert(list.end(), rest.begin(), rest.end());
  return list;
}

// The warden has set it before with the host's own privilege, where it has that: only then can
// nobody inside lower it again.
Action victim_first() {
  return on(Step::program_rlimits, Op::write_control, "/proc/self/oom_score_adj", kTenantOomScore);
}

std::vector<Action> entering_actions() {
  return {
      step(Step::program_session, Op::session),
      step(Step::program_go, Op::await_go),
      step(Step::program_join, Op::join_namespaces),
      on(Step::program_directory, Op::change_directory, kWorkDirectory),
      step(Step::program_descriptors, Op::place_descriptors, kFirstClosed),
  };
}

std::vector<Action> rlimit_actions(const PlanSpec& spec, const PlanHost& host) {
  const auto open_files =
      static_cast<std::int64_t>(std::min<std::uint64_t>(spec.open_files, host.open_files_max));
  const auto limit = [](std::int64_t resource, std::int64_t soft, std::int64_t hard) {
    return step(Step::program_rlimits, Op::set_rlimit, resource, soft, hard);
  };
  constexpr std::int64_t kStackBytes = 8 << 20;
  std::vector<Action> list = {
      // The host's core pattern may name a file: nothing of the tenant is ever dumped anywhere.
      limit(RLIMIT_CORE, 0, 0),
      limit(RLIMIT_NOFILE, open_files, open_files),
      limit(RLIMIT_MEMLOCK, 64 << 10, 64 << 10),
      limit(RLIMIT_MSGQUEUE, 819'200, 819'200),
      limit(RLIMIT_SIGPENDING, 1024, 1024),
      limit(RLIMIT_NICE, 0, 0),
      limit(RLIMIT_RTPRIO, 0, 0),
      limit(RLIMIT_STACK, kStackBytes, kStackBytes),
      victim_first(),
  };
  // Each sandbox's user is another id, so nobody else's processes count.
  if (spec.processes_by_rlimit) {
    list.push_back(limit(RLIMIT_NPROC, spec.processes, spec.processes));
  }
  return list;
}

std::vector<Action> unprivileged_actions(FilterKind filter) {
  std::vector<Action> list = {
      step(Step::program_bounding_set, Op::drop_bounding_set),
      step(Step::program_identity, Op::set_identity, kUser, kUser),
      step(Step::program_capabilities, Op::drop_capabilities),
      step(Step::program_no_new_privs, Op::no_new_privs),
      step(Step::program_self_check, Op::self_check, kUser, kFirstClosed),
      step(Step::program_filter, Op::install_filter, static_cast<std::int64_t>(filter)),
  };
  return list;
}

std::vector<Action> program_actions(const PlanSpec& spec, const PlanHost& host) {
  std::vector<Action> list = entering_actions();
  const std::vector<Action> rlimits = rlimit_actions(spec, host);
  list.insert(list.end(), rlimits.begin(), rlimits.end());
  list.push_back(step(Step::program_affinity, Op::set_affinity));
  list.push_back(step(Step::program_keyring, Op::join_session_keyring));
  list.push_back(step(Step::program_umask, Op::set_umask, 022));
  const std::vector<Action> last = unprivileged_actions(FilterKind::program);
  list.insert(list.end(), last.begin(), last.end());
  return list;
}

std::vector<Action> courier_actions() {
  std::vector<Action> list = entering_actions();
  // While it is still nobody whom the tenant may signal: once it is the tenant's user, whatever
  // lives on in the sandbox could stop or kill it, and so live on beyond the deadline.
  const auto joined = std::ranges::find(list, Op::join_namespaces, &Action::op);
  list.insert(joined + 1, step(Step::kill_tree, Op::kill_others));
  list.push_back(step(Step::program_rlimits, Op::set_rlimit, RLIMIT_CORE, 0, 0));
  list.push_back(victim_first());
  list.push_back(step(Step::program_umask, Op::set_umask, 022));
  const std::vector<Action> last = unprivileged_actions(FilterKind::courier);
  list.insert(list.end(), last.begin(), last.end());
  return list;
}

std::vector<std::string> environment(const PlanSpec& spec, std::uint32_t cpus) {
  std::map<std::string, std::string> env = spec.env;
  env["HOME"] = kHomeDirectory;
  env["PWD"] = kWorkDirectory;
  // Read by the interpreter at its start and taken out of its environment by what it finds there.
  env["PYTHONPATH"] = kGuestDirectory;
  for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}) {
    env[name] = std::to_string(cpus);
  }
  std::vector<std::string> list;
  for (const auto& [name, value] : env) list.push_back(name + "=" + value);
  return list;
}

std::string kibibytes(std::uint64_t bytes) { return std::to_string(bytes / 1024) + " kB\n"; }

std::map<std::string, std::string> make_figures(const PlanSpec& spec, const PlanHost& host,
                                                std::uint32_t cpus) {
  const std::string total = kibibytes(spec.memory_bytes);
  std::string meminfo = "MemTotal:       " + total + "MemFree:        " + total +
                        "MemAvailable:   " + total +
                        "Buffers:        0 kB\nCached:         0 kB\nSwapCached:     0 kB\n"
                        "Active:         0 kB\nInactive:       0 kB\n"
                        "SwapTotal:      0 kB\nSwapFree:       0 kB\n"
                        "Dirty:          0 kB\nWriteback:      0 kB\nAnonPages:      0 kB\n"
                        "Mapped:         0 kB\nShmem:          0 kB\nSlab:           0 kB\n"
                        "SReclaimable:   0 kB\nSUnreclaim:     0 kB\n";
  std::string stat = "cpu  0 0 0 0 0 0 0 0 0 0\n";
  std::string cpuinfo;
  for (std::uint32_t cpu = 0; cpu < cpus; ++cpu) {
    stat += "cpu" + std::to_string(cpu) + " 0 0 0 0 0 0 0 0 0 0\n";
    cpuinfo += "processor\t: " + std::to_string(cpu) + "\n" + host.cpuinfo_block + "\n";
  }
  stat += "intr 0\nctxt 0\nbtime 0\nprocesses 1\nprocs_running 1\nprocs_blocked 0\n";
  return {{"meminfo", meminfo}, {"stat", stat}, {"cpuinfo", cpuinfo}};
}

}  // namespace

std::vector<std::uint32_t> slot_cpus(const PlanHost& host, std::uint32_t count,
                                     std::uint32_t slot) {
  std::vector<std::uint32_t> chosen;
  const std::size_t all = host.cpus.size();
  for (std::size_t i = 0; i < std::min<std::size_t>(count, all); ++i) {
    chosen.push_back(host.cpus[(std::size_t{slot} * count + i) % all]);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

Result<Plan> make_plan(const PlanSpec& spec, const PlanHost& host) {
  if (host.cpus.empty()) {
    return fail(ErrorCode::unsupported_host, "no processor is allowed to this process");
  }
  Plan plan;
  const double wanted = std::min(std::ceil(spec.cpus), static_cast<double>(host.cpus.size()));
  plan.cpus_shown = std::max(1U, static_cast<std::uint32_t>(wanted));
  plan.cgroup.memory_bytes = spec.memory_bytes;
  plan.cgroup.processes = spec.processes + 1;
  plan.cgroup.cpu_quota_us =
      static_cast<std::uint64_t>(spec.cpus * static_cast<double>(plan.cgroup.cpu_period_us));
  plan.figures = make_figures(spec, host, plan.cpus_shown);
  plan.zone = zone_actions(host);
  plan.init = init_actions(spec, plan);
  plan.program = program_actions(spec, host);
  plan.execute = {on(Step::program_exec, Op::execute, "", spec.python)};
  plan.courier = courier_actions();
  plan.filters[static_cast<std::size_t>(FilterKind::init)] = TRY(init_filter());
  plan.filters[static_cast<std::size_t>(FilterKind::program)] = TRY(program_filter());
  plan.filters[static_cast<std::size_t>(FilterKind::courier)] = TRY(courier_filter());
  plan.argv = {"python3", kScript};
  plan.envp = environment(spec, plan.cpus_shown);
  return plan;
}

}  // namespace hutch::plan
