#include "warden/plan_host.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <filesystem>

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

// A link may lead below a place that is about to be covered.
std::string canonical(const std::string& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::weakly_canonical(path, error);
  return error ? path : real.string();
}

std::string zone_base(const WardenOptions& options) {
  if (!options.rootless) return "/run";
  const std::array<std::string, 2> needed{canonical(options.state_dir),
                                          canonical(options.image_path)};
  for (std::string place : {"/run", "/mnt", "/srv", "/media"}) {
    const std::string real = canonical(place) + "/";
    const auto below = [&real](const std::string& path) { return path.starts_with(real); };
    if (sys::exists(place) && std::ranges::none_of(needed, below)) return place;
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
