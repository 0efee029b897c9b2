// The judgement of this host under one configuration: the same for `serve`, which refuses to start
// on a failure, and for `doctor`, which shows it all.
#pragma once

#include <vector>

#include "base/log.h"
#include "config/config.h"
#include "plan/host.h"

namespace hutch::cli {

// Looks at the host. A limit that it cannot hold is a failure: a sandbox without one is none.
std::vector<plan::Finding> check_host(const config::Config& config);

// What a start does with the host: cautions go to the log, failures are refused.
Status admit_host(const config::Config& config, Log& log);

}  // namespace hutch::cli
