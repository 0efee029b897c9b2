// Every decision about a sandbox, made before anything is done: which mounts, which limits, which
// filter, which steps in which order. Pure: no system call, no clock, no file. What is printed by
// plan_json is what the warden acts on. Values.
#pragma once

#include <linux/filter.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "isolation/action.h"

namespace hutch::plan {

// What is asked for, in numbers that the configuration has already bounded.
struct PlanSpec {
  std::uint64_t memory_bytes = 0;
  double cpus = 1.0;
  std::uint32_t processes = 0;
  // Where no control group holds `processes`: the kernel then counts those of the program's user.
  bool processes_by_rlimit = false;
  std::uint32_t open_files = 0;
  std::uint64_t disk_bytes = 0;
  std::uint64_t inodes = 0;
  std::uint64_t shm_bytes = 0;
  // From the image.
  std::string python;                                           // absolute path inside the image
  std::map<std::string, std::string> env;                       // what the image wants to be set
  std::vector<std::pair<std::string, std::string>> home_links;  // path below HOME -> target
};

// What the plan has to know about this host.
struct PlanHost {
  std::vector<std::uint32_t> cpus;   // online and allowed to us, ascending
  std::uint64_t open_files_max = 0;  // our own hard limit, which cannot be raised inside
  std::string cpuinfo_block;         // the host's first /proc/cpuinfo block, without its end
  std::string zone_path;             // where the warden has mounted the template
};

// The numbers that the cgroup enforces.
struct CgroupPlan {
  std::uint64_t memory_bytes = 0;
  std::uint32_t processes = 0;  // init and the program's processes together
  std::uint64_t cpu_quota_us = 0;
  std::uint64_t cpu_period_us = 100'000;
};

struct Plan {
  CgroupPlan cgroup;
  std::uint32_t cpus_shown = 1;  // processors that a program counts
  std::vector<isolation::Action> zone;
  std::vector<isolation::Action> init;
  std::vector<isolation::Action> program;
  std::vector<isolation::Action> execute;
  std::vector<isolation::Action> courier;
  std::array<std::vector<sock_filter>, 3> filters;  // by FilterKind
  std::vector<std::string> argv;
  std::vector<std::string> envp;
  // Files that are bound over those of /proc, so that a program sees its limits: name -> content.
  std::map<std::string, std::string> figures;
};

// Paths inside a sandbox.
inline constexpr const char* kWorkDirectory = "/work";
inline constexpr const char* kHomeDirectory = "/home/sandbox";
inline constexpr const char* kScript = "/code/main.py";
inline constexpr const char* kGuestDirectory = "/opt/hutch";

// When the host itself runs out of memory, a tenant's process is the first to go.
inline constexpr const char* kTenantOomScore = "500";

// The processors of slot `slot`: as many as the plan shows, spread over the host's.
std::vector<std::uint32_t> slot_cpus(const PlanHost& host, std::uint32_t count, std::uint32_t slot);

// Fails as unsupported_host (no processor to use) or internal (a filter table contradicts itself).
Result<Plan> make_plan(const PlanSpec& spec, const PlanHost& host);

// The block that the launcher maps; see launcher_wire.h.
std::string encode_plan(const Plan& plan);

// The whole plan as JSON with sorted keys and two spaces of indent; filters by their size only.
std::string plan_json(const Plan& plan);

}  // namespace hutch::plan
