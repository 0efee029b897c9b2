#include "plan/run_plan.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "plan/id_layout.h"

namespace hutch::plan {
namespace {

using isolation::CgroupVersion;

constexpr const char* kDevices[] = {"null", "zero", "full", "random", "urandom"};

void add_devices(const RunPlan& run, const std::string& dev, std::vector<TemplateStep>* steps) {
  steps->push_back({"tmpfs", "", dev, "size=64k,nr_inodes=32,mode=0755"});
  for (const char* name : kDevices) {
    const std::string path = dev + "/" + name;
    if (!run.rootless) {
      steps->push_back({"device", "", path, ""});
      continue;
    }
    steps->push_back({"bind", std::string("/dev/") + name, path, ""});
    steps->push_back({"restrict", "", path, "ro,nosuid,noexec"});
  }
  steps->push_back({"restrict", "", dev, "ro,noexec"});
}

std::vector<CgroupFile> all_cgroup_files(const CgroupPlan& cgroup, CgroupVersion version) {
  const std::string memory = std::to_string(cgroup.memory_bytes);
  const std::string processes = std::to_string(cgroup.processes);
  const std::string quota = std::to_string(cgroup.cpu_quota_us);
  const std::string period = std::to_string(cgroup.cpu_period_us);
  switch (version) {
    case CgroupVersion::none: break;
    case CgroupVersion::v1:
      return {{"memory.limit_in_bytes", memory},
              {"memory.memsw.limit_in_bytes", memory, true},
              {"memory.kmem.tcp.limit_in_bytes", std::to_string(cgroup.memory_bytes / 8), true},
              {"pids.max", processes},
              {"cpu.cfs_period_us", period},
              {"cpu.cfs_quota_us", quota}};
    case CgroupVersion::v2:
      return {{"memory.max", memory},
              {"memory.swap.max", "0", true},
              {"memory.oom.group", "1"},
              {"pids.max", processes},
              {"cpu.max", quota + " " + period}};
  }
  return {};
}

}  // namespace

std::vector<TemplateStep> template_steps(const RunPlan& run) {
  const std::string& zone = run.host.zone_path;
  const std::string root = zone + "/R";
  const std::string guest = root + kGuestDirectory;
  std::vector<TemplateStep> steps{{"namespace", "", "", "mnt"}, {"private", "", "/", ""}};
  if (run.rootless) {
    steps.push_back({"tmpfs", "", run.zone_base, "size=64k,nr_inodes=8,mode=0755"});
  }
  steps.push_back({"tmpfs", "", zone, "size=1m,nr_inodes=64,mode=0755"});
  if (run.image.is_file) {
    steps.push_back({"image", run.image.path, root, "ro,nosuid,nodev,noatime"});
  } else {
    steps.push_back({"bind", run.image.path, root, ""});
    steps.push_back({"restrict", "", root, "ro,nosuid,nodev,noatime"});
  }
  steps.push_back({"tmpfs", "", zone + "/E", "size=1m,nr_inodes=64,mode=0755"});
  steps.push_back({"restrict", "", zone + "/E", "ro,nodev,noexec"});
  add_devices(run, root + "/dev", &steps);
  steps.push_back({"bind", zone + "/E/hutch", guest, ""});
  steps.push_back({"restrict", "", guest, "ro,nosuid,nodev"});
  steps.push_back({"restrict", "", zone, "ro,nosuid,nodev"});
  return steps;
}

std::vector<CgroupFile> cgroup_files(const RunPlan& run) {
  std::vector<CgroupFile> files = all_cgroup_files(run.plan.cgroup, run.cgroups);
  const std::pair<std::string_view, std::string_view> limits[] = {
      {"memory", "memory."}, {"processes", "pids."}, {"cpus", "cpu."}};
  for (const auto& [limit, prefix] : limits) {
    if (std::ranges::find(run.not_held, limit) == run.not_held.end()) continue;
    std::erase_if(files, [&](const CgroupFile& file) { return file.file.starts_with(prefix); });
  }
  return files;
}

IdMaps id_maps(const RunPlan& run) {
  const std::uint64_t slot = run.rootless ? kSubordinateFirstSlot : kServerFirstSlot;
  IdMaps maps;
  if (run.rootless) {
    if (run.uid != 0)
      maps.server = {{0, run.uid, 1}, {1, run.subordinate.first, run.subordinate.count}};
    maps.zone = {{0, 1, kSubordinateBlock}};
  } else {
    maps.zone = {{0, run.first_id, kServerRange.count}};
  }
  maps.sandbox = {{0, slot, 1}, {1000, slot + 1, 1}};
  return maps;
}

std::vector<NamespacePlan> namespace_plan() {
  return {{"warden", {"mnt"}},
          {"zone", {"user", "pid", "mnt", "ipc", "uts", "net", "cgroup"}},
          {"init", {"net", "user", "pid", "mnt", "ipc", "uts", "cgroup"}},
          {"program", {}},
          {"courier", {}}};
}

}  // namespace hutch::plan
