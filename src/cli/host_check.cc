#include "cli/host_check.h"

#include <unistd.h>

namespace hutch::cli {

std::vector<plan::Finding> check_host(const config::Config& config) {
  return plan::judge(plan::gather_host_facts(""), {.memory_bytes = config.limits.memory_bytes,
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
