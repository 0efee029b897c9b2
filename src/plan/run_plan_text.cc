// The plan as a list that can be read aloud.
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <array>

#include "plan/filter_policy.h"
#include "plan/run_plan.h"

namespace hutch::plan {
namespace {

using isolation::Action;
using isolation::Op;

constexpr std::size_t kColumns = 100;

struct Name {
  std::int64_t value;
  const char* name;
};

constexpr std::array<Name, 9> kResources{{{RLIMIT_CORE, "core"},
                                          {RLIMIT_NOFILE, "nofile"},
                                          {RLIMIT_MEMLOCK, "memlock"},
                                          {RLIMIT_MSGQUEUE, "msgqueue"},
                                          {RLIMIT_SIGPENDING, "sigpending"},
                                          {RLIMIT_NICE, "nice"},
                                          {RLIMIT_RTPRIO, "rtprio"},
                                          {RLIMIT_STACK, "stack"},
                                          {RLIMIT_NPROC, "nproc"}}};
constexpr std::array<const char*, 3> kFilters{"init", "program", "courier"};

std::string resource_name(std::int64_t resource) {
  for (const Name& one : kResources) {
    if (one.value == resource) return one.name;
  }
  return std::to_string(resource);
}

std::string numbers_of(const Action& action) {
  switch (action.op) {
    case Op::set_rlimit:
      return fmt::format("{} {}, at most {}", resource_name(action.a), action.b, action.c);
    case Op::set_identity: return fmt::format("gid {}, uid {}", action.a, action.b);
    case Op::make_directory: return fmt::format("mode {:o}, owner {}", action.a, action.b);
    case Op::place_descriptors: return fmt::format("close from {}", action.a);
    case Op::set_umask: return fmt::format("{:03o}", action.a);
    case Op::set_dumpable: return fmt::format("{}", action.a);
    case Op::self_check: return fmt::format("uid {}, no descriptor from {}", action.a, action.b);
    case Op::unshare: return action.a == CLONE_NEWCGROUP ? "cgroup" : fmt::format("{}", action.a);
    case Op::bind: return action.a == 1 ? "with what is mounted below" : "";
    case Op::install_filter: return kFilters.at(static_cast<std::size_t>(action.a));
    case Op::mount_tmpfs: return action.a == (MS_NOSUID | MS_NODEV) ? "nosuid,nodev" : "";
    default: return {};
  }
}

void add_actions(std::string_view title, const std::vector<Action>& actions, std::string* text) {
  *text += fmt::format("\n{}\n", title);
  std::size_t number = 0;
  for (const Action& action : actions) {
    std::string what;
    for (const std::string& part : {action.t, action.s, numbers_of(action)}) {
      if (!part.empty()) what += (what.empty() ? "" : "  ") + part;
    }
    std::string line = fmt::format("{:4}  {:22} {:20} {}", ++number, step_name(action.step),
                                   isolation::op_name(action.op), what);
    line.erase(line.find_last_not_of(' ') + 1);
    *text += line + "\n";
  }
}

// Words behind a label, in lines of their own width below each other.
void add_words(const std::string& label, std::string_view words, std::string* text) {
  const std::string indent(label.size(), ' ');
  std::string line = label;
  bool is_empty = true;
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(' '));
    words.remove_prefix(std::min(word.size() + 1, words.size()));
    if (!is_empty && line.size() + 1 + word.size() > kColumns) {
      *text += line + "\n";
      line = indent;
      is_empty = true;
    }
    line += (is_empty ? "" : " ") + std::string(word);
    is_empty = false;
  }
  *text += line + "\n";
}

std::string allowed_calls(const isolation::FilterPolicy& policy) {
  std::string names;
  for (const isolation::FilterRule& rule : policy.rules) {
    if (rule.otherwise != isolation::allow()) continue;
    names +=
        (names.empty() ? "" : " ") + std::string(isolation::syscall_name(policy.arch, rule.number));
  }
  return names;
}

void add_filters(std::string* text) {
  const isolation::Arch arch = native_arch();
  const isolation::FilterPolicy program = program_policy(arch);
  *text += "\nSystem calls of a program\n";
  for (const PolicyLine& line : program_lines()) {
    *text += fmt::format("  {} ({})\n", isolation::verdict_text(line.verdict), line.reason);
    add_words("      ", line.calls, text);
  }
  *text += "  By their arguments, before the above\n";
  for (const isolation::FilterRule& rule : program.rules) {
    for (const auto& each : rule.rules) {
      *text += fmt::format("      {}: {}\n", isolation::syscall_name(arch, rule.number),
                           isolation::rule_text(each));
    }
  }
  *text += fmt::format("  Unknown calls: {}; another instruction set: {}; x32: {}\n",
                       isolation::verdict_text(program.unknown),
                       isolation::verdict_text(program.foreign_arch),
                       isolation::verdict_text(program.foreign_abi));
  *text += "\nSystem calls of init; all others are refused\n";
  add_words("      ", allowed_calls(init_policy(arch)), text);
  *text += "\nSystem calls of a courier; all others are refused\n";
  add_words("      ", allowed_calls(courier_policy(arch)), text);
}

void add_limits(const RunPlan& run, std::string* text) {
  const CgroupPlan& cgroup = run.plan.cgroup;
  *text += "\nLimits of a sandbox\n";
  *text +=
      fmt::format("  memory {} bytes, {} processes with init, {} us of processor in {} us\n",
                  cgroup.memory_bytes, cgroup.processes, cgroup.cpu_quota_us, cgroup.cpu_period_us);
  *text += fmt::format("  processors shown: {}\n", run.plan.cpus_shown);
  for (const CgroupFile& file : cgroup_files(run)) {
    *text += fmt::format("  {} = {}{}\n", file.file, file.value,
                         file.is_optional ? " (where the kernel has it)" : "");
  }
  if (!run.waived.empty()) *text += "  waived: " + enumerate(run.waived) + "\n";
  if (!run.not_held.empty()) *text += "  NOT HELD here: " + enumerate(run.not_held) + "\n";
}

void add_map(std::string_view name, const std::vector<IdMapLine>& map, std::string* text) {
  for (const IdMapLine& line : map) {
    const std::string range = line.count == 1 ? "" : fmt::format(", and {} more", line.count - 1);
    *text += fmt::format("  {:8} {} = {}{}\n", name, line.inside, line.outside, range);
  }
}

void add_namespaces(const RunPlan& run, std::string* text) {
  *text += "\nNamespaces that a process gets of its own\n";
  for (const NamespacePlan& process : namespace_plan()) {
    std::string kinds;
    for (const char* kind : process.fresh) kinds += std::string(" ") + kind;
    *text += fmt::format("  {:8}{}\n", process.process, kinds.empty() ? " none: init's" : kinds);
  }
  const IdMaps maps = id_maps(run);
  *text += "\nIds (inside = outside; the next slot's are higher by 2)\n";
  add_map("server", maps.server, text);
  add_map("zone", maps.zone, text);
  add_map("sandbox", maps.sandbox, text);
}

void add_template(const RunPlan& run, std::string* text) {
  *text += "\nTemplate, mounted by the warden\n";
  std::size_t number = 0;
  for (const TemplateStep& step : template_steps(run)) {
    std::string line = fmt::format("{:4}  {:10} {}", ++number, step.act, step.target);
    if (!step.source.empty()) line += "  from " + step.source;
    if (!step.options.empty()) line += "  " + step.options;
    *text += line + "\n";
  }
}

void add_program(const Plan& plan, std::string* text) {
  *text += "\nThe program is started as\n ";
  for (const std::string& word : plan.argv) *text += " " + word;
  *text += "\nwith the environment\n";
  for (const std::string& one : plan.envp) *text += "  " + one + "\n";
  *text += "\nFiles of /proc that show its limits:";
  for (const auto& [name, content] : plan.figures) *text += " " + name;
  *text += "\n";
}

void add_host(const RunPlan& run, std::string* text) {
  *text += "\nThis host (`hutch doctor` shows all of it)\n";
  bool is_fine = true;
  for (const Finding& finding : run.findings) {
    if (finding.remedy.empty()) continue;
    is_fine = false;
    *text += fmt::format("  {:8} {:16} {}\n", verdict_name(finding.verdict), finding.name,
                         finding.meaning);
  }
  if (is_fine) *text += "  has everything that is used\n";
}

}  // namespace

std::string run_plan_text(const RunPlan& run) {
  std::string text = fmt::format("Plan of a run from the image {}{}, {}\n", run.image.name,
                                 run.image.digest.empty() ? "" : " (" + run.image.digest + ")",
                                 run.rootless ? "without root" : "by root");
  if (!run.assumed.empty()) text += "\nAssumed\n";
  for (const std::string& one : run.assumed) text += "  " + one + "\n";
  add_limits(run, &text);
  add_namespaces(run, &text);
  add_template(run, &text);
  add_actions("Zone: what every sandbox starts from", run.plan.zone, &text);
  add_actions("Sandbox: what its init does", run.plan.init, &text);
  add_actions("Program: what it does before it starts", run.plan.program, &text);
  add_actions("Program: how it starts", run.plan.execute, &text);
  add_actions("Courier: what carries files in and out", run.plan.courier, &text);
  add_program(run.plan, &text);
  add_filters(&text);
  add_host(run, &text);
  return text;
}

}  // namespace hutch::plan
