#include <linux/capability.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/units.h"
#include "plan/host_rules.h"

namespace hutch::plan {
namespace {

// What the host itself runs, beside the sandboxes.
constexpr std::uint64_t kProcessesBeside = 2048;
// Descriptors of server and warden, each: the numbers from 64 to 70 are passed through when those
// of a sandbox are put in their places; and what a sandbox takes with its run and its connection.
constexpr std::uint64_t kFilesBeside = 72;
constexpr std::uint64_t kFilesPerSandbox = 8;
// Python with all libraries of the image loaded has some two thousand.
constexpr std::uint64_t kMapCountWanted = 16'384;
constexpr std::uint64_t kMapCountUsual = 65'530;

constexpr std::array<ResourceNeed, 4> kResourceNeeds{{
    {RLIMIT_STACK, "stack", "Max stack size", 8_MiB},
    {RLIMIT_MEMLOCK, "memlock", "Max locked memory", 64_KiB},
    {RLIMIT_MSGQUEUE, "msgqueue", "Max msgqueue size", 819'200},
    {RLIMIT_SIGPENDING, "sigpending", "Max pending signals", 1024},
}};

std::string mebibytes(std::uint64_t bytes) { return std::to_string(bytes / 1_MiB) + " MiB"; }

// A line for the next login.
std::string limits_line(const HostFacts& facts, const std::string& limit) {
  return "echo '" + facts.user.name + " - " + limit +
         "' | sudo tee -a /etc/security/limits.d/hutch.conf";
}

std::uint64_t sandboxes_at_most(const HostNeeds& needs) {
  return std::max(needs.sandboxes, needs.sandboxes_max);
}

}  // namespace

Finding judge_overcommit(const HostFacts& facts) {
  constexpr std::string_view kName = "overcommit";
  if (facts.overcommit != 2) return pass(kName, "Memory is counted when it is touched.");
  return caution(kName,
                 "vm.overcommit_memory is 2: memory is counted when it is asked for, so sandboxes "
                 "are refused long before memory is used.",
                 set_sysctl(facts, "vm.overcommit_memory", 0));
}

Finding judge_pid_max(const HostFacts& facts, const HostNeeds& needs) {
  constexpr std::string_view kName = "pid_max";
  const std::uint64_t wanted = std::uint64_t{needs.sandboxes} * needs.processes + kProcessesBeside;
  const std::string use = ", up to " + std::to_string(wanted) + " used";
  constexpr std::string_view kMeans =
      ": full sandboxes could keep the host from starting processes.";
  if (facts.pid_max < wanted) {
    return caution(kName,
                   std::to_string(facts.pid_max) + " process numbers" + use + std::string(kMeans),
                   set_sysctl(facts, "kernel.pid_max", 4'194'304));
  }
  if (facts.threads_max < wanted) {
    return caution(
        kName, std::to_string(facts.threads_max) + " threads in all" + use + std::string(kMeans),
        set_sysctl(facts, "kernel.threads-max", std::max<std::uint64_t>(wanted, 65'536)));
  }
  if (facts.group_processes_max < wanted - kProcessesBeside) {
    return caution(kName,
                   "Our own control group allows " + std::to_string(facts.group_processes_max) +
                       " processes" + use + ": full sandboxes are refused processes early.",
                   facts.container.empty() ? "systemd-run --scope -p TasksMax=infinity ..."
                                           : "docker run --pids-limit=-1 ...");
  }
  return pass(kName, std::to_string(facts.pid_max) + " process numbers" + use + ".");
}

// Since Linux 5.14 what is made inside a user namespace is charged to its maker as well.
Finding judge_process_limit(const HostFacts& facts, const HostNeeds& needs) {
  constexpr std::string_view kName = "process_limit";
  if (!is_rootless(facts)) return skipped(kName, "Root may have any number of processes.");
  const std::uint64_t wanted = std::uint64_t{needs.sandboxes} * needs.processes;
  if (facts.user.processes_max >= wanted) {
    return pass(kName, "The user may have as many processes as full sandboxes use.");
  }
  return caution(kName,
                 "The user may have " + std::to_string(facts.user.processes_max) +
                     " processes (ulimit -u), and full sandboxes use " + std::to_string(wanted) +
                     ": they are refused processes early.",
                 limits_line(facts, "nproc unlimited"));
}

Finding judge_open_files(const HostFacts& facts, const HostNeeds& needs) {
  constexpr std::string_view kName = "open_files";
  const std::uint64_t limit = facts.user.open_files_max;
  const std::uint64_t least = kFilesBeside + kFilesPerSandbox * needs.sandboxes;
  const std::uint64_t most = kFilesBeside + kFilesPerSandbox * sandboxes_at_most(needs);
  const std::string have = "This process may open " + std::to_string(limit) + " files";
  const std::string wanted =
      std::to_string(std::max<std::uint64_t>({most, needs.open_files, 65'536}));
  const std::string remedy = facts.user.is_root
                                 ? "prlimit --nofile=" + wanted + ":" + wanted + " hutch serve"
                                 : limits_line(facts, "nofile " + wanted);
  if (limit < least) {
    return failed(kName, have + " (ulimit -Hn), and a start takes " + std::to_string(least) + ".",
                  remedy);
  }
  if (limit < most) {
    return caution(kName,
                   have + " (ulimit -Hn), and full use takes " + std::to_string(most) +
                       ": runs are then refused.",
                   remedy);
  }
  if (limit < needs.open_files) {
    return caution(kName,
                   have + " (ulimit -Hn), so a program gets no more than that, instead of the " +
                       std::to_string(needs.open_files) + " of limits.open_files.",
                   remedy);
  }
  return pass(kName, have + ".");
}

std::span<const ResourceNeed> resource_needs() { return kResourceNeeds; }

Finding judge_resource_limits(const HostFacts& facts) {
  constexpr std::string_view kName = "resource_limits";
  std::vector<std::string> low;
  std::string options;
  for (const ResourceNeed& need : kResourceNeeds) {
    const auto found = facts.user.limits_max.find(need.name);
    if (found != facts.user.limits_max.end() && found->second >= need.least) continue;
    const std::string least = std::to_string(need.least);
    low.push_back(
        std::string(need.name) + " (" +
        (found == facts.user.limits_max.end() ? "unknown" : std::to_string(found->second)) +
        ", and a program gets " + least + ")");
    options += std::string(" --") + need.name + "=" + least + ":" + least;
  }
  if (low.empty()) return pass(kName, "Hard limits leave room for those of a program.");
  return failed(kName, "Hard limits are lower than those of a program: " + enumerate(low) + ".",
                as_root(facts, "prlimit") + options + " --pid $$, then hutch serve");
}

Finding judge_inotify(const HostFacts& facts, const HostNeeds& needs) {
  constexpr std::string_view kName = "inotify";
  if (facts.cgroups.version != isolation::CgroupVersion::v2) {
    return skipped(kName, "Only control groups v2 are watched through it.");
  }
  const std::uint64_t most = sandboxes_at_most(needs);
  const std::string numbers = "fs.inotify.max_user_instances is " +
                              std::to_string(facts.inotify_instances_max) +
                              ", and a sandbox takes one";
  if (facts.inotify_instances_max >= most) return pass(kName, numbers + ".");
  const std::string remedy =
      set_sysctl(facts, "fs.inotify.max_user_instances", std::max<std::uint64_t>(1024, most * 2));
  if (facts.inotify_instances_max >= needs.sandboxes) {
    return caution(kName, numbers + ": full use takes " + std::to_string(most) + ".", remedy);
  }
  return failed(kName, numbers + ": a start takes " + std::to_string(needs.sandboxes) + ".",
                remedy);
}

Finding judge_map_count(const HostFacts& facts) {
  constexpr std::string_view kName = "map_count";
  if (facts.max_map_count >= kMapCountWanted) {
    return pass(kName, "A program may map " + std::to_string(facts.max_map_count) + " pieces.");
  }
  return caution(kName,
                 "A program may map " + std::to_string(facts.max_map_count) +
                     " pieces of memory: large libraries and many threads fail for lack of them.",
                 set_sysctl(facts, "vm.max_map_count", kMapCountUsual));
}

Finding judge_memory(const HostFacts& facts, const HostNeeds& needs) {
  constexpr std::string_view kName = "memory";
  const std::uint64_t wanted = needs.memory_bytes * needs.sandboxes;
  if (facts.memory_bytes < needs.memory_bytes) {
    return failed(kName,
                  mebibytes(facts.memory_bytes) + " in all, and one sandbox may use " +
                      mebibytes(needs.memory_bytes) + ".",
                  "hutch serve --set limits.memory_bytes=" +
                      std::to_string(facts.memory_bytes / 4 / 1_MiB * 1_MiB));
  }
  const std::string numbers = mebibytes(facts.memory_available_bytes) + " available, " +
                              std::to_string(needs.sandboxes) + " sandboxes may use " +
                              mebibytes(wanted);
  if (facts.memory_available_bytes >= wanted) return pass(kName, numbers + ".");
  return caution(kName, numbers + ": with all of them full, runs are refused.",
                 needs.sandboxes > 1
                     ? "hutch serve --set pool.target=1 --set pool.ceiling=1"
                     : "hutch serve --set limits.memory_bytes=" +
                           std::to_string(facts.memory_available_bytes / 2 / 1_MiB * 1_MiB));
}

Finding judge_cpus(const HostFacts& facts, const HostNeeds& needs) {
  constexpr std::string_view kName = "cpus";
  const std::size_t count = facts.cpus.size();
  if (count == 0) {
    return failed(kName, "Which processors may be used cannot be read; /proc is not mounted.",
                  as_root(facts, "mount -t proc proc /proc"));
  }
  std::array<char, 32> wanted{};
  std::snprintf(wanted.data(), wanted.size(), "%g", needs.cpus);
  const std::string numbers = std::to_string(count) + (count == 1 ? " processor" : " processors") +
                              ", " + wanted.data() + " for one sandbox";
  if (static_cast<double>(count) >= needs.cpus) return pass(kName, numbers + ".");
  return caution(kName, numbers + ": a sandbox gets what there is.",
                 "hutch serve --set limits.cpus=" + std::to_string(count));
}

Finding judge_memory_killer(const HostFacts& facts) {
  constexpr std::string_view kName = "memory_killer";
  if (is_rootless(facts)) {
    return skipped(kName, "Without root no process can be kept from the out-of-memory killer.");
  }
  if (has_capability(facts, CAP_SYS_RESOURCE)) {
    return pass(kName, "When the host runs out of memory, the server is the last to be killed.");
  }
  return caution(kName,
                 "Without CAP_SYS_RESOURCE the server cannot protect itself from the kernel's "
                 "out-of-memory killer.",
                 facts.container.empty() ? "systemctl edit hutch.service, then add "
                                           "AmbientCapabilities=CAP_SYS_RESOURCE below [Service]"
                                         : "docker run --cap-add=SYS_RESOURCE ...");
}

}  // namespace hutch::plan
