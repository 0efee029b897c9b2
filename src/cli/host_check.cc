#include "cli/host_check.h"

#include <unistd.h>

#include <algorithm>

namespace hutch::cli {

std::vector<plan::Finding> check_host(const config::Config& config) {
  plan::HostFacts facts = plan::gather_host_facts("");
  std::erase_if(facts.unenforced, [&](const isolation::UnenforcedLimit& limit) {
    return std::find(config.waive.begin(), config.waive.end(), limit.name) != config.waive.end();
  });
  return plan::judge(facts, {.memory_bytes = config.limits.memory_bytes,
                             .cpus = config.limits.cpus,
                             .processes = config.limits.processes,
                             .sandboxes = config.pool.target});
}

Status admit_host(const config::Config& config, Log& log) {
  const std::vector<plan::Finding> findings = check_host(config);
  for (const plan::Finding& finding : findings) {
    if (finding.verdict != plan::FindingVerdict::caution) continue;
    log.warn("host_caution", finding.meaning,
             {{"check", finding.name}, {"remedy", finding.remedy}});
  }
  for (const std::string& name : config.waive) {
    log.warn("limit_waived", "the operator lets this limit go where the host cannot hold it",
             {{"limit", name}});
  }
  return refuse_host(findings);
}

Status refuse_host(const std::vector<plan::Finding>& findings) {
  if (::geteuid() != 0) {
    for (const plan::Finding& finding : findings) {
      if (finding.name == "privilege") return plan::refuse_failed({finding});
    }
  }
  return plan::refuse_failed(findings);
}

}  // namespace hutch::cli
