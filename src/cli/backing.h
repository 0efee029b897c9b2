// What stands behind the engine: the image, the warden that is forked while this process is still
// root, and the socket between the two. Without a warden for the fake engine.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "cli/privileges.h"
#include "cli/server_life.h"
#include "cli/state_lock.h"
#include "cli/warden_process.h"
#include "engine/native_engine.h"

namespace hutch::cli {

class Backing {
 public:
  // Opens the image and starts the warden. `lock` is the state directory's: the warden holds it
  // too, until nothing of it is left. Errors: no_image, or what start_warden() failed as.
  static Result<Backing> start(const ServerLife& life, const User& server, const StateLock& lock,
                               Log& log);

  // Once. Everything must outlive the engine; this object, too: it then waits for the warden.
  std::unique_ptr<engine::Engine> make_engine(boost::asio::io_context& io, const Clock& clock);

  // Limits that the configuration waives and this host does not hold.
  const std::vector<std::string>& waived() const { return options_.waived; }

  // What programs run in. Without a digest for the fake engine.
  const std::string& image_name() const { return image_name_; }
  const std::string& image_digest() const { return image_digest_; }

  // Null for the fake engine.
  WardenProcess* warden() { return warden_.get(); }

 private:
  Fd image_;  // the hold on it; the warden has a copy, and the last one lets go
  std::unique_ptr<WardenProcess> warden_;
  Fd socket_;
  engine::NativeEngineOptions options_;
  std::string image_name_;
  std::string image_digest_;
};

}  // namespace hutch::cli
