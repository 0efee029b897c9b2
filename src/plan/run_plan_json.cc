#include <boost/json.hpp>

#include "plan/filter_policy.h"
#include "plan/plan_json.h"
#include "plan/run_plan.h"

namespace hutch::plan {
namespace {

namespace json = boost::json;

json::array findings_json(const std::vector<Finding>& findings) {
  json::array list;
  for (const Finding& finding : findings) {
    list.push_back({{"name", finding.name},
                    {"verdict", verdict_name(finding.verdict)},
                    {"meaning", finding.meaning},
                    {"remedy", finding.remedy}});
  }
  return list;
}

json::array template_json(const RunPlan& run) {
  json::array list;
  for (const TemplateStep& step : template_steps(run)) {
    json::object one{{"do", step.act}};
    if (!step.source.empty()) one["source"] = step.source;
    if (!step.target.empty()) one["target"] = step.target;
    if (!step.options.empty()) one["options"] = step.options;
    list.push_back(std::move(one));
  }
  return list;
}

json::array cgroup_files_json(const RunPlan& run) {
  json::array list;
  for (const CgroupFile& file : cgroup_files(run)) {
    list.push_back({{"file", file.file}, {"value", file.value}, {"optional", file.is_optional}});
  }
  return list;
}

json::array map_json(const std::vector<IdMapLine>& map) {
  json::array list;
  for (const IdMapLine& line : map) {
    list.push_back({{"inside", line.inside}, {"outside", line.outside}, {"count", line.count}});
  }
  return list;
}

json::object namespaces_json() {
  json::object processes;
  for (const NamespacePlan& process : namespace_plan()) {
    processes[process.process] = json::array(process.fresh.begin(), process.fresh.end());
  }
  return processes;
}

// One call a line: its verdict where no rule matches, and the rules before that.
json::object filter_json(const isolation::FilterPolicy& policy) {
  json::array calls;
  for (const isolation::FilterRule& rule : policy.rules) {
    json::object one{{"call", isolation::syscall_name(policy.arch, rule.number)},
                     {"verdict", isolation::verdict_text(rule.otherwise)}};
    json::array rules;
    for (const auto& each : rule.rules) rules.emplace_back(isolation::rule_text(each));
    if (!rules.empty()) one["rules"] = std::move(rules);
    calls.push_back(std::move(one));
  }
  return {{"calls", std::move(calls)},
          {"foreign_abi", isolation::verdict_text(policy.foreign_abi)},
          {"foreign_arch", isolation::verdict_text(policy.foreign_arch)},
          {"unknown", isolation::verdict_text(policy.unknown)}};
}

json::object filters_json() {
  const isolation::Arch arch = native_arch();
  return {{"courier", filter_json(courier_policy(arch))},
          {"init", filter_json(init_policy(arch))},
          {"program", filter_json(program_policy(arch))}};
}

}  // namespace

std::string run_plan_json(const RunPlan& run) {
  json::object root = plan_object(run.plan);
  const IdMaps maps = id_maps(run);
  root["assumed"] = strings_json(run.assumed);
  json::array cpus;
  for (const std::uint32_t cpu : slot_cpus(run.host, run.plan.cpus_shown, 0)) cpus.push_back(cpu);
  root["cpus"] = std::move(cpus);
  root["cgroup_files"] = cgroup_files_json(run);
  root["filters"] = filters_json();
  root["fit"] = refuse_failed(run.findings).has_value();
  root["host"] = findings_json(run.findings);
  root["id_maps"] = {{"sandbox", map_json(maps.sandbox)},
                     {"server", map_json(maps.server)},
                     {"zone", map_json(maps.zone)}};
  root["image"] = {
      {"digest", run.image.digest}, {"name", run.image.name}, {"path", run.image.path}};
  root["namespaces"] = namespaces_json();
  root["not_held"] = strings_json(run.not_held);
  root["rootless"] = run.rootless;
  root["template"] = template_json(run);
  root["waived"] = strings_json(run.waived);
  return print_lines(root);
}

}  // namespace hutch::plan
