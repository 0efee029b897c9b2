// Everything that is decided about a run, for eyes and scripts: the plan that the warden acts on,
// and around it what the host answers, which namespaces and ids, which files of a control group.
// `hutch plan` prints it. Pure; values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/host.h"
#include "plan/plan.h"

namespace hutch::plan {

struct PlannedImage {
  std::string name;
  std::string digest;  // empty when it is not there
  std::string path;    // the file or the directory
  bool is_file = true;
};

struct RunPlan {
  Plan plan;
  PlanHost host;
  PlannedImage image;
  isolation::CgroupVersion cgroups = isolation::CgroupVersion::none;
  bool rootless = false;
  std::uint32_t uid = 0;             // of who serves
  IdRange subordinate;               // rootless: of that user
  std::uint32_t first_id = 0;        // root: where the zone's ids begin on the host
  std::string zone_base;             // rootless: the directory that is covered for the template
  std::vector<std::string> assumed;  // what was not there to be looked at, in sentences
  std::vector<Finding> findings;
  std::vector<std::string> waived;    // by the configuration
  std::vector<std::string> not_held;  // of these, what this host cannot hold
};

// One step of making the template that every sandbox starts from, done by the warden itself.
struct TemplateStep {
  std::string act;  // "namespace", "private", "tmpfs", "image", "bind", "restrict"
  std::string source;
  std::string target;
  std::string options;  // of the tmpfs, or flags such as "ro,nosuid"

  friend bool operator==(const TemplateStep&, const TemplateStep&) = default;
};
std::vector<TemplateStep> template_steps(const RunPlan& run);

// What is written into a sandbox's group, in this order. Files that a kernel may lack are marked.
struct CgroupFile {
  std::string file;
  std::string value;
  bool is_optional = false;

  friend bool operator==(const CgroupFile&, const CgroupFile&) = default;
};
// Without those of limits that are not held.
std::vector<CgroupFile> cgroup_files(const RunPlan& run);

struct IdMapLine {
  std::uint64_t inside = 0;
  std::uint64_t outside = 0;
  std::uint64_t count = 0;

  friend bool operator==(const IdMapLine&, const IdMapLine&) = default;
};
struct IdMaps {
  std::vector<IdMapLine> server;   // of the user namespace that a server without root lives in
  std::vector<IdMapLine> zone;     // for the server
  std::vector<IdMapLine> sandbox;  // for the zone; slot N has ids that are higher by 2 N
};
IdMaps id_maps(const RunPlan& run);

// The namespaces of each process, as clone(2) names their kinds.
struct NamespacePlan {
  const char* process;
  std::vector<const char*> fresh;
};
std::vector<NamespacePlan> namespace_plan();

std::string run_plan_json(const RunPlan& run);
std::string run_plan_text(const RunPlan& run);

}  // namespace hutch::plan
