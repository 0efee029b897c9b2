#include "plan/plan_json.h"

#include <boost/json.hpp>

namespace hutch::plan {
namespace {

namespace json = boost::json;

json::array actions_json(const std::vector<isolation::Action>& actions) {
  json::array list;
  for (const isolation::Action& action : actions) {
    json::object one;
    one["step"] = step_name(action.step);
    one["do"] = isolation::op_name(action.op);
    if (!action.s.empty()) one["source"] = action.s;
    if (!action.t.empty()) one["target"] = action.t;
    if (action.a != 0 || action.b != 0 || action.c != 0) {
      one["numbers"] = json::array{action.a, action.b, action.c};
    }
    list.push_back(std::move(one));
  }
  return list;
}

// One action a line: a plan is read by people and compared by line.
void print(const json::value& value, const std::string& indent, std::string* out) {
  const std::string inner = indent + "  ";
  const bool list_of_lines =
      value.is_array() && !value.get_array().empty() && !value.get_array().front().is_int64();
  if (value.is_object() && indent.size() < 4) {
    out->append("{\n");
    bool first = true;
    for (const auto& [key, member] : value.get_object()) {
      out->append(first ? "" : ",\n").append(inner).append(json::serialize(key)).append(": ");
      print(member, inner, out);
      first = false;
    }
    out->append("\n").append(indent).append("}");
  } else if (list_of_lines) {
    out->append("[\n");
    bool first = true;
    for (const json::value& member : value.get_array()) {
      out->append(first ? "" : ",\n").append(inner).append(json::serialize(member));
      first = false;
    }
    out->append("\n").append(indent).append("]");
  } else {
    out->append(json::serialize(value));
  }
}

}  // namespace

json::array strings_json(const std::vector<std::string>& strings) {
  return json::array(strings.begin(), strings.end());
}

json::object plan_object(const Plan& plan) {
  json::object root;
  root["argv"] = strings_json(plan.argv);
  root["cgroup"] = {{"cpu_period_us", plan.cgroup.cpu_period_us},
                    {"cpu_quota_us", plan.cgroup.cpu_quota_us},
                    {"memory_bytes", plan.cgroup.memory_bytes},
                    {"processes", plan.cgroup.processes}};
  root["courier"] = actions_json(plan.courier);
  root["cpus_shown"] = plan.cpus_shown;
  root["environment"] = strings_json(plan.envp);
  root["execute"] = actions_json(plan.execute);
  json::object figures;
  for (const auto& [name, content] : plan.figures) figures[name] = content;
  root["figures"] = std::move(figures);
  root["filter_instructions"] = {{"courier", plan.filters[2].size()},
                                 {"init", plan.filters[0].size()},
                                 {"program", plan.filters[1].size()}};
  root["init"] = actions_json(plan.init);
  root["program"] = actions_json(plan.program);
  root["zone"] = actions_json(plan.zone);
  return root;
}

std::string print_lines(const json::value& value) {
  std::string text;
  print(value, "", &text);
  return text + "\n";
}

std::string plan_json(const Plan& plan) { return print_lines(plan_object(plan)); }

}  // namespace hutch::plan
