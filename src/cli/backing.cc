#include "cli/backing.h"

#include <sys/epoll.h>

#include <utility>

#include "cli/image_lookup.h"
#include "cli/wiring.h"
#include "engine/fake_engine.h"
#include "image/lock.h"
#include "image/unpack.h"
#include "warden/start.h"

namespace hutch::cli {

namespace {

// Readable once the only client has left: what takes long at the start need not be finished then.
Fd departure_of(const Fd& connection) {
  Fd watch(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event leaving{.events = EPOLLRDHUP, .data = {}};
  const bool watches =
      watch && ::epoll_ctl(watch.get(), EPOLL_CTL_ADD, connection.get(), &leaving) == 0;
  return watches ? std::move(watch) : Fd();
}

// Only the host's root can mount an image file: for others it is unpacked once, also one that the
// host's administrator has built.
Result<image::Image> open_image(const ServerLife& life, const User& server, Log& log) {
  const config::Config& config = life.config;
  FoundImage found = TRY(find_image(life.images_dir, config.image, server.subordinate));
  if (!server.subordinate || !found.image.is_erofs) return std::move(found.image);
  const Fd departure = life.listens() ? Fd() : departure_of(life.connection);
  const image::UnpackOptions options{.from_state_dir = std::move(found.state_dir),
                                     .to_state_dir = life.images_dir,
                                     .name = config.image,
                                     .interrupt_fd = departure.get()};
  return image::unpack_image(options,
                             [&log](std::string_view what) { log.info("image_unpack", what, {}); });
}

}  // namespace

Result<Backing> Backing::start(const ServerLife& life, const User& server,
                               const StateLock& /*lock*/, Log& log) {
  const config::Config& config = life.config;
  Backing backing;
  backing.options_.limits = config.limits;
  backing.image_name_ = config.image;
  if (config.engine == "fake") return backing;
  const image::Image image = TRY(open_image(life, server, log));
  backing.image_ = TRY(image::hold_image(image));
  const warden::WardenOptions options = warden_options(config, image, server);
  warden::WardenConnection connection = TRY(warden::start_warden(options));
  backing.warden_ = std::make_unique<WardenProcess>(connection.pid, log);
  backing.socket_ = std::move(connection.socket);
  backing.options_ = engine_options(config, image);
  backing.options_.waived = std::move(connection.waived);
  backing.image_name_ = image.name;
  backing.image_digest_ = image.digest;
  // Nobody is spared the time that libraries take where the program waits for its sandbox; it
  // imports what it needs.
  if (!life.listens()) backing.options_.imports.clear();
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
