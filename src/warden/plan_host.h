// What a plan has to know about this host, read where it is: for the warden, which acts on the
// plan, and for `hutch plan`, which shows it. Reads only.
#pragma once

#include <string>

#include "plan/plan.h"
#include "warden/options.h"

namespace hutch::warden {

// The directory that the template is made below. An ordinary user can make no directory of the host
// and covers one, for the warden alone: one that every host has and that hides nothing which is
// still needed.
std::string zone_base(const WardenOptions& options);

plan::PlanHost plan_host(const WardenOptions& options);

}  // namespace hutch::warden
