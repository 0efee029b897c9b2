#include "cli/backing.h"

#include <utility>

#include "cli/wiring.h"
#include "engine/fake_engine.h"
#include "warden/start.h"

namespace hutch::cli {

Result<Backing> Backing::start(const config::Config& config, const User& server,
                               const StateLock& /*lock*/, Log& log) {
  Backing backing;
  backing.options_.limits = config.limits;
  if (config.engine == "fake") return backing;
  const image::Image image = TRY(image::open_image(config.state_dir, config.image));
  const warden::WardenOptions options = warden_options(config, image, server.uid);
  warden::WardenConnection connection = TRY(warden::start_warden(options));
  backing.warden_ = std::make_unique<WardenProcess>(connection.pid, log);
  backing.socket_ = std::move(connection.socket);
  backing.options_ = engine_options(config, image);
  return backing;
}

std::unique_ptr<engine::Engine> Backing::make_engine(boost::asio::io_context& io,
                                                     const Clock& clock) {
#ifdef HUTCH_TESTING
  if (!warden_) {
    const engine::FakeEngineOptions options{.limits = options_.limits};
    return std::make_unique<engine::FakeEngine>(io, options);
  }
#endif
  return std::make_unique<engine::NativeEngine>(io, std::move(socket_), clock, options_);
}

}  // namespace hutch::cli
