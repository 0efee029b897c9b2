#include "cli/host_check.h"

#include "cli/wiring.h"

namespace hutch::cli {

plan::HostFacts host_facts(const config::Config& config) {
  plan::HostFacts facts = plan::gather_host_facts("");
  plan::look_at_images(config.state_dir, facts);
  return facts;
}

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
  const auto findings = plan::judge(host_facts(config), host_needs(config));
  for (const plan::Finding& finding : findings) {
    if (finding.verdict != plan::FindingVerdict::caution) continue;
    log.warn("host_caution", finding.meaning,
             {{"check", finding.name}, {"remedy", finding.remedy}});
  }
  return plan::refuse_failed(findings);
}

}  // namespace hutch::cli
