#include "warden/plan_host.h"

#include <sched.h>
#include <sys/resource.h>

#include "base/sys.h"

namespace hutch::warden {
namespace {

// Where the template is mounted, in a mount namespace that nobody else has: every instance may use
// the same directory. Not below the state directory, which the zone's root cannot enter.
constexpr const char* kZoneDirectory = "/hutch/zone";

std::vector<std::uint32_t> allowed_cpus() {
  std::vector<std::uint32_t> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

// The first block, without the number of its processor: the plan counts anew.
std::string first_cpuinfo_block() {
  const auto text = sys::read_file("/proc/cpuinfo", 16 << 20);
  if (!text) return "model name\t: unknown\n";
  const std::string block = text->substr(0, text->find("\n\n") + 1);
  const std::size_t line_end = block.find('\n');
  return block.starts_with("processor") ? block.substr(line_end + 1) : block;
}

}  // namespace

std::string zone_base(const WardenOptions& options) {
  if (!options.rootless) return "/run";
  for (std::string place : {"/run", "/mnt", "/srv", "/media"}) {
    const auto below = [&place](const std::string& path) { return path.starts_with(place + "/"); };
    if (sys::exists(place) && !below(options.state_dir) && !below(options.image_path)) return place;
  }
  return "/run";
}

plan::PlanHost plan_host(const WardenOptions& options) {
  plan::PlanHost host;
  host.cpus = allowed_cpus();
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  host.open_files_max = files.rlim_max;
  host.cpuinfo_block = first_cpuinfo_block();
  host.zone_path = zone_base(options) + kZoneDirectory;
  return host;
}

}  // namespace hutch::warden
