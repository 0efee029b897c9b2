#include "isolation/cgroup_layout.h"

#include <algorithm>
#include <optional>

namespace hutch::isolation {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = text.find(separator);
    if (end != 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return parts;
}

// mountinfo writes blanks and backslashes in paths as three octal digits.
std::string unescape(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\' && at + 3 < text.size()) {
      const int value = (text[at + 1] - '0') * 64 + (text[at + 2] - '0') * 8 + (text[at + 3] - '0');
      plain.push_back(static_cast<char>(value));
      at += 3;
    } else {
      plain.push_back(text[at]);
    }
  }
  return plain;
}

struct Mount {
  std::string root;   // the directory of the hierarchy that is mounted
  std::string point;  // where
  bool v2 = false;
  std::vector<std::string> controllers;  // v1
};

std::vector<Mount> cgroup_mounts(std::string_view mountinfo) {
  std::vector<Mount> mounts;
  for (const std::string& line : split(mountinfo, '\n')) {
    const std::vector<std::string> fields = split(line, ' ');
    const auto dash = std::ranges::find(fields, "-");
    if (fields.size() < 10 || fields.end() - dash < 4) continue;
    const std::string& type = *(dash + 1);
    if (type != "cgroup" && type != "cgroup2") continue;
    mounts.push_back(
        {unescape(fields[3]), unescape(fields[4]), type == "cgroup2", split(*(dash + 3), ',')});
  }
  return mounts;
}

// The directory of group `own` below the mount; nothing when the mount shows another part.
std::optional<std::string> directory_of(const Mount& mount, std::string_view own) {
  if (own.find("/..") != std::string_view::npos) return std::nullopt;
  std::string_view below = own;
  if (mount.root != "/") {
    const bool inside = own.starts_with(mount.root) &&
                        (own.size() == mount.root.size() || own[mount.root.size()] == '/');
    if (!inside) return std::nullopt;
    below.remove_prefix(mount.root.size());
  }
  if (below == "/") below = {};
  return mount.point + std::string(below);
}

}  // namespace

CgroupLayout parse_cgroup_layout(std::string_view mountinfo, std::string_view self_cgroup) {
  const std::vector<Mount> mounts = cgroup_mounts(mountinfo);
  CgroupLayout layout;
  for (const std::string& line : split(self_cgroup, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    const std::string own = line.substr(second + 1);
    for (const Mount& mount : mounts) {
      const auto directory = directory_of(mount, own);
      if (!directory) continue;
      if (names.empty()) {
        if (mount.v2 && layout.v2.empty()) layout.v2 = *directory;
        continue;
      }
      for (const std::string& name : split(names, ',')) {
        const bool here = std::ranges::find(mount.controllers, name) != mount.controllers.end();
        if (!mount.v2 && here && !name.starts_with("name=")) layout.v1.emplace(name, *directory);
      }
    }
  }
  layout.hybrid = !layout.v2.empty() && !layout.v1.empty();
  if (layout.v1.contains("memory") || (layout.v2.empty() && !layout.v1.empty())) {
    layout.version = CgroupVersion::v1;
  } else if (!layout.v2.empty()) {
    layout.version = CgroupVersion::v2;
  }
  return layout;
}

Result<CgroupLayout> detect_cgroups(CgroupKernel& kernel, const std::string& root_prefix) {
  const std::string mountinfo = TRY(kernel.read(root_prefix + "/proc/self/mountinfo"));
  const auto own = kernel.read(root_prefix + "/proc/self/cgroup");
  // A kernel without control groups has no such file: a layout of nothing, not a failure.
  if (!own && own.error().code == ErrorCode::not_found) return CgroupLayout{};
  if (!own) return fail(own.error());
  CgroupLayout layout = parse_cgroup_layout(mountinfo, *own);
  for (auto& [name, directory] : layout.v1) directory.insert(0, root_prefix);
  if (!layout.v2.empty()) {
    layout.v2.insert(0, root_prefix);
    std::string text = TRY(kernel.read(layout.v2 + "/cgroup.controllers"));
    std::ranges::replace(text, '\n', ' ');
    layout.v2_controllers = split(text, ' ');
  }
  return layout;
}

std::string layout_text(const CgroupLayout& layout) {
  switch (layout.version) {
    case CgroupVersion::none: return "none";
    case CgroupVersion::v1: return layout.hybrid ? "v1 beside v2" : "v1";
    case CgroupVersion::v2: return "v2";
  }
  return "none";
}

}  // namespace hutch::isolation
