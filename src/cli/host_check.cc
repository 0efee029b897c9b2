#include "cli/host_check.h"

#include "cli/wiring.h"

namespace hutch::cli {

plan::HostNeeds host_needs(const config::Config& config) {
  return {.memory_bytes = config.limits.memory_bytes,
          .cpus = config.limits.cpus,
          .processes = config.limits.processes,
          .sandboxes = config.pool.target,
          .sandboxes_max = sandboxes_max(config),
          .open_files = config.limits.open_files,
          .waived = config.waive};
}

Status admit_host(const config::Config& config, Log& log) {
  const auto findings = plan::judge(plan::gather_host_facts(""), host_needs(config));
  for (const plan::Finding& finding : findings) {
    if (finding.verdict != plan::FindingVerdict::caution) continue;
    log.warn("host_caution", finding.meaning,
             {{"check", finding.name}, {"remedy", finding.remedy}});
  }
  return plan::refuse_failed(findings);
}

}  // namespace hutch::cli
