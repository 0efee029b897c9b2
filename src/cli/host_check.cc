#include "cli/host_check.h"

namespace hutch::cli {

std::vector<plan::Finding> check_host(const config::Config& config) {
  return plan::judge(plan::gather_host_facts(""),
                     {.memory_bytes = config.limits.memory_bytes,
                      .cpus = config.limits.cpus,
                      .processes = config.limits.processes,
                      .sandboxes = config.pool.target,
                      .sandboxes_max = config.runs.max + config.pool.ceiling + 32,
                      .open_files = config.limits.open_files,
                      .waived = config.waive});
}

Status admit_host(const config::Config& config, Log& log) {
  const std::vector<plan::Finding> findings = check_host(config);
  for (const plan::Finding& finding : findings) {
    if (finding.verdict != plan::FindingVerdict::caution) continue;
    log.warn("host_caution", finding.meaning,
             {{"check", finding.name}, {"remedy", finding.remedy}});
  }
  return plan::refuse_failed(findings);
}

}  // namespace hutch::cli
