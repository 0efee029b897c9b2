// The judgement of this host under one configuration: the same for `serve`, which refuses to start
// on a failure, for `doctor`, which shows it all, and for `plan`.
#pragma once

#include <vector>

#include "base/log.h"
#include "config/config.h"
#include "plan/host.h"

namespace hutch::cli {

// This host as the server of that configuration finds it.
plan::HostFacts host_facts(const config::Config& config);
plan::HostNeeds host_needs(const config::Config& config);

// What a start does with the host: cautions go to the log, failures are refused. Before a user
// namespace is entered, so that an ordinary user is told what that user lacks.
Status admit_host(const config::Config& config, Log& log);

}  // namespace hutch::cli
