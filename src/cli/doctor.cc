#include "cli/doctor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/json.h"
#include "cli/config_flags.h"
#include "cli/exit_code.h"
#include "cli/host_check.h"
#include "cli/instance.h"
#include "cli/output.h"

namespace hutch::cli {
namespace {

struct Examination {
  bool rootless = false;
  std::string user;
  std::vector<plan::Finding> findings;
  std::string state_dir;
  std::optional<Instance> instance;  // nothing when no server has run there
  Holdings holdings;
};

struct DoctorFlags {
  bool json = false;
  bool rootless = false;
  std::string user;
};

// Root may ask what an ordinary user would be told: the one named, or the one behind sudo.
Result<plan::HostFacts> gather(const config::Config& config, const DoctorFlags& flags) {
  if (!flags.user.empty() && ::geteuid() != 0) {
    return fail(ErrorCode::config, "--user is for root: leave it out to ask about yourself");
  }
  if ((!flags.rootless && flags.user.empty()) || ::geteuid() != 0) return host_facts(config);
  const char* behind_sudo = std::getenv("SUDO_USER");
  std::string user = flags.user;
  if (user.empty() && behind_sudo != nullptr) user = behind_sudo;
  if (user.empty() || user == "root") {
    return fail(ErrorCode::config, "which user is asked about? --user NAME");
  }
  auto facts = plan::gather_host_facts_for("", user);
  if (!facts) facts.error().code = ErrorCode::config;
  return facts;
}

Result<Examination> examine(const config::Config& config, const DoctorFlags& flags) {
  const plan::HostFacts facts = TRY(gather(config, flags));
  Examination examination{.rootless = plan::is_rootless(facts),
                          .user = facts.user.name,
                          .findings = plan::judge(facts, host_needs(config)),
                          .state_dir = config.state_dir};
  Result<Instance> instance = read_instance(examination.state_dir);
  if (instance) {
    examination.holdings = count_holdings(*instance, "/proc");
    examination.instance = std::move(*instance);
  }
  return examination;
}

// The directory's name is the same in every hierarchy; a server that ran has told it exactly.
std::string prefix_of(const Examination& examination) {
  if (examination.instance && !examination.instance->cgroup_prefixes.empty()) {
    return std::filesystem::path(examination.instance->cgroup_prefixes.front()).filename().string();
  }
  return cgroup_prefix(examination.state_dir);
}

void write_strings(json::Writer& out, std::string_view key,
                   const std::vector<std::string>& strings) {
  out.key(key).begin_array();
  for (const std::string& text : strings) out.string(text);
  out.end_array();
}

void write_findings(json::Writer& out, const std::vector<plan::Finding>& findings) {
  out.key("fit").boolean(plan::refuse_failed(findings).has_value());
  out.key("findings").begin_array();
  for (const plan::Finding& finding : findings) {
    out.begin_object();
    out.key("name").string(finding.name);
    out.key("verdict").string(plan::verdict_name(finding.verdict));
    out.key("meaning").string(finding.meaning);
    out.key("remedy").string(finding.remedy);
    out.end_object();
  }
  out.end_array();
}

std::string as_json(const Examination& examination) {
  const Instance instance = examination.instance.value_or(Instance{});
  json::Writer out;
  out.begin_object();
  write_findings(out, examination.findings);
  out.key("rootless").boolean(examination.rootless);
  out.key("user").string(examination.user);
  out.key("state_dir").string(examination.state_dir);
  out.key("running").boolean(is_running(instance.server_pid));
  out.key("server_pid").integer(instance.server_pid);
  out.key("warden_pid").integer(instance.warden_pid);
  out.key("launcher_pid").integer(instance.launcher_pid);
  out.key("anchor_pid").integer(instance.anchor_pid);
  out.key("server_uid").unsigned_integer(instance.server_uid);
  out.key("uid_range").begin_object();
  out.key("first").unsigned_integer(instance.uid_first);
  out.key("count").unsigned_integer(instance.uid_count);
  out.end_object();
  out.key("cgroup_prefix").string(prefix_of(examination));
  write_strings(out, "cgroup_prefixes", instance.cgroup_prefixes);
  write_strings(out, "cgroups", examination.holdings.cgroups);
  write_strings(out, "network_namespaces", examination.holdings.network_namespaces);
  out.key("processes").begin_array();
  for (const pid_t pid : examination.holdings.processes) out.integer(pid);
  out.end_array();
  out.end_object();
  return out.take();
}

std::string as_text(const Examination& examination) {
  std::string text;
  for (const plan::Finding& finding : examination.findings) {
    text += fmt::format("{:8} {:16} {}\n", plan::verdict_name(finding.verdict), finding.name,
                        finding.meaning);
    if (!finding.remedy.empty()) text += fmt::format("{:25} Remedy: {}\n", "", finding.remedy);
  }
  text += fmt::format("\nState directory {}: ", examination.state_dir);
  if (!examination.instance) return text + "no server has run here\n";
  const Instance& instance = *examination.instance;
  const Holdings& holdings = examination.holdings;
  text += is_running(instance.server_pid) ? fmt::format("served by process {}, warden {}\n",
                                                        instance.server_pid, instance.warden_pid)
                                          : std::string("its last server has ended\n");
  text += fmt::format("  user ids {} to {}: {} processes, {} network namespaces\n",
                      instance.uid_first, instance.uid_first + instance.uid_count - 1,
                      holdings.processes.size(), holdings.network_namespaces.size());
  text += fmt::format("  control groups named {}: {}\n", prefix_of(examination),
                      holdings.cgroups.size());
  return text;
}

}  // namespace

void add_doctor_command(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("doctor", "Say what this host can do, and what a server has on it");
  const std::shared_ptr<ConfigFlags> flags = add_config_flags(*command);
  auto wants = std::make_shared<DoctorFlags>();
  command->add_flag("--json", wants->json, "For scripts: one JSON object");
  command->add_flag("--rootless", wants->rootless,
                    "As root: judge for the ordinary user behind sudo, or for --user");
  command->add_option("--user", wants->user, "As root: judge for this ordinary user")
      ->option_text("NAME");
  command->footer(
      "\nJudges for root when root asks, else for a server without root. Ends with 0 when Hutch "
      "can run here, with 69 or 77 when it cannot.\n");
  command->callback([flags, wants, &exit_code] {
    const Result<config::Config> config = load_config(*flags);
    const Result<Examination> examination =
        config ? examine(*config, *wants) : fail(config.error());
    if (!examination) {
      exit_code = report(examination.error());
      return;
    }
    const Status fit = plan::refuse_failed(examination->findings);
    const int printed =
        print_data(wants->json ? as_json(*examination) + "\n" : as_text(*examination));
    exit_code = fit ? printed : static_cast<int>(exit_code_for(fit.error().code));
  });
}

}  // namespace hutch::cli
