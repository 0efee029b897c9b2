// SIGHUP: reads the settings again as the start did, and hands over what a running server can take.
// What it cannot, it names in the log. Settings that make no sense change nothing.
//
// The file is read by the unprivileged user that the server has become, by its path, like anybody
// would: no descriptor of root's is kept open for it. A descriptor of its directory would let a
// server that somebody has taken over walk from there to what its path shuts it out from, such as
// the rest of /root/.config. In turn only what this half of the server holds anyway can be changed;
// limits, image and user are the warden's, which was told once, by root.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/log.h"
#include "config/config.h"
#include "service/pool_decide.h"

namespace hutch::cli {

class Reload {
 public:
  using Hosts = std::vector<std::string>;
  struct Calls {
    std::function<void(const service::PoolOptions&)> pool;
    std::function<void(const model::Limits&)> answer_limits;
    std::function<void(const Hosts&)> internal_hosts;
    std::function<void(const Hosts&)> public_hosts;
  };

  // `running` is what the server was started with. `log` must outlive this object.
  Reload(config::Config running, Log& log, Calls calls);

  void run();

 private:
  void take_over(const config::Config& read);

  config::Config running_;
  Log& log_;
  Calls calls_;
};

}  // namespace hutch::cli
