#include "plan/host.h"

#include <algorithm>
#include <array>

#include "plan/host_rules.h"

namespace hutch::plan {
Finding pass(std::string_view name, std::string meaning) {
  return {name, FindingVerdict::pass, std::move(meaning), {}};
}

Finding caution(std::string_view name, std::string meaning, std::string remedy) {
  return {name, FindingVerdict::caution, std::move(meaning), std::move(remedy)};
}

Finding failed(std::string_view name, std::string meaning, std::string remedy) {
  return {name, FindingVerdict::fail, std::move(meaning), std::move(remedy)};
}

Finding forbidden(std::string_view name, std::string meaning, std::string remedy) {
  return {name, FindingVerdict::fail, std::move(meaning), std::move(remedy), true};
}

Finding skipped(std::string_view name, std::string meaning) {
  return {name, FindingVerdict::skipped, std::move(meaning), {}};
}

bool has_capability(const HostFacts& facts, unsigned capability) {
  return (facts.user.capabilities >> capability & 1U) != 0;
}

std::string as_root(const HostFacts& facts, std::string_view command) {
  return (facts.user.is_root ? "" : "sudo ") + std::string(command);
}

std::string set_sysctl(const HostFacts& facts, std::string_view setting, std::uint64_t value) {
  return as_root(facts, "sysctl -w " + std::string(setting) + "=" + std::to_string(value));
}

std::string enumerate(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " and " : ", ";
    text += words[i];
  }
  return text;
}

bool is_rootless(const HostFacts& facts) {
  return !facts.user.is_root || facts.user.in_user_namespace;
}

std::vector<Finding> judge(const HostFacts& facts, const HostNeeds& needs) {
  return {
      judge_kernel(facts),
      judge_machine(facts),
      judge_container(facts),
      judge_privilege(facts),
      judge_user_namespaces(facts),
      judge_namespaces(facts),
      judge_namespace_limits(facts, needs),
      judge_subordinate_ids(facts),
      judge_id_map_tools(facts),
      judge_uid_ranges(facts),
      judge_cgroups(facts, needs),
      judge_waived(facts, needs),
      judge_swap(facts),
      judge_seccomp(facts),
      judge_keyrings(facts),
      judge_proc(facts),
      judge_devices(facts),
      judge_run_directory(facts),
      judge_images(facts),
      judge_erofs(facts),
      judge_image_tools(facts),
      judge_landlock(facts),
      judge_selinux(facts),
      judge_core_dumps(facts),
      judge_overcommit(facts),
      judge_pid_max(facts, needs),
      judge_process_limit(facts, needs),
      judge_open_files(facts, needs),
      judge_resource_limits(facts),
      judge_inotify(facts, needs),
      judge_map_count(facts),
      judge_memory(facts, needs),
      judge_cpus(facts, needs),
      judge_memory_killer(facts),
  };
}

std::vector<std::string> limits_not_held(const HostFacts& facts, const HostNeeds& needs) {
  std::vector<std::string> names;
  for (const auto& limit : facts.unenforced) {
    if (std::ranges::find(needs.waived, limit.name) == needs.waived.end()) continue;
    names.push_back(limit.name);
  }
  return names;
}

Status refuse_failed(const std::vector<Finding>& findings) {
  std::string text;
  bool only_privilege = true;
  bool is_root = false;
  for (const Finding& finding : findings) {
    if (finding.verdict != FindingVerdict::fail) continue;
    only_privilege = only_privilege && finding.is_privilege;
    is_root = is_root || finding.name == "privilege";
    text += (text.empty() ? "" : " ") + finding.meaning + " Remedy: " + finding.remedy;
  }
  if (text.empty()) return {};
  if (only_privilege && !is_root) text += " (or as root: sudo hutch serve)";
  return fail(only_privilege ? ErrorCode::not_permitted : ErrorCode::unsupported_host,
              std::move(text));
}

std::string_view verdict_name(FindingVerdict verdict) {
  switch (verdict) {
    case FindingVerdict::pass: return "PASS";
    case FindingVerdict::caution: return "CAUTION";
    case FindingVerdict::fail: return "FAIL";
    case FindingVerdict::skipped: return "SKIPPED";
  }
  return "SKIPPED";
}

}  // namespace hutch::plan
