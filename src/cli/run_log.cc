#include "cli/run_log.h"

#include <utility>

namespace hutch::cli {

service::ShotsObservers log_observers(Log& log, std::function<void()> on_fatal) {
  service::ShotsObservers observers;
  observers.create_failed = [&log](const Error& error, std::uint32_t failures_in_a_row) {
    log.warn("create_failed", "a sandbox could not be made; trying again",
             {{"step", step_name(error.step)},
              {"errno", error.sys_errno},
              {"reason", describe(error)},
              {"failures_in_a_row", failures_in_a_row}});
  };
  observers.warm_lost = [&log] {
    log.warn("warm_lost", "a waiting sandbox died by itself; another one is made");
  };
  observers.fatal = [&log, on_fatal = std::move(on_fatal)](const Error& error) {
    log.error("engine_lost", "no sandbox can be made any more; stopping",
              {{"reason", describe(error)}});
    on_fatal();
  };
  return observers;
}

}  // namespace hutch::cli
