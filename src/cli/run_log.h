// What happens to sandboxes in the background, as lines of the log.
#pragma once

#include <functional>

#include "base/log.h"
#include "service/shots.h"

namespace hutch::cli {

// `log` must outlive whoever gets the observers. `on_fatal` is called after the line is written.
service::ShotsObservers log_observers(Log& log, std::function<void()> on_fatal);

}  // namespace hutch::cli
