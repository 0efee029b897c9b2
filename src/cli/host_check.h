// The judgement of this host under one configuration: the same for `serve`, which refuses to start
// on a failure, and for `doctor`, which shows it all.
#pragma once

#include <vector>

#include "config/config.h"
#include "plan/host.h"

namespace hutch::cli {

// Looks at the host. Limits that the configuration waives count as held.
std::vector<plan::Finding> check_host(const config::Config& config);

// As plan::refuse_failed(), but who is not root is told only that: most of the rest follows from
// it.
Status refuse_host(const std::vector<plan::Finding>& findings);

}  // namespace hutch::cli
