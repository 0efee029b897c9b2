// Where this process's own control groups are, for v1, v2 and both at once. Owns the reading of
// /proc/self/mountinfo and /proc/self/cgroup; creates nothing.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "isolation/cgroup_kernel.h"

namespace hutch::isolation {

// The version that carries our limits. v1 when its memory controller is mounted: a controller is in
// one of the two at a time, whatever else is mounted beside it.
enum class CgroupVersion { none, v1, v2 };

struct CgroupLayout {
  CgroupVersion version = CgroupVersion::none;
  bool hybrid = false;  // v2 is mounted beside v1 controllers
  // v1: controller ("memory", "pids", "cpu", "cpuacct", "freezer", ...) -> our own group's
  // directory. Two controllers of one mount have the same directory.
  std::map<std::string, std::string> v1;
  // v2: our own group's directory, empty when not mounted, and what its cgroup.controllers lists.
  std::string v2;
  std::vector<std::string> v2_controllers;

  friend bool operator==(const CgroupLayout&, const CgroupLayout&) = default;
};

// From the texts of the two files, without v2_controllers. Our group in a hierarchy whose mount
// does not show it (another cgroup namespace) counts as absent.
CgroupLayout parse_cgroup_layout(std::string_view mountinfo, std::string_view self_cgroup);

// Reads `root_prefix` + /proc/self/... and puts the prefix before every directory found.
Result<CgroupLayout> detect_cgroups(CgroupKernel& kernel, const std::string& root_prefix);

// "v1", "v1 beside v2", "v2", "none".
std::string layout_text(const CgroupLayout& layout);

}  // namespace hutch::isolation
