// How long one server lives and whom it serves: `hutch serve` listens until a signal says stop; the
// server of a single `hutch run` has one connection, no listener, and ends with it. A value.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "cli/state_lock.h"
#include "config/config.h"

namespace hutch::cli {

struct ServerLife {
  config::Config config;
  // One end of a connected pair of stream sockets: the one connection. Empty for a server that
  // listens.
  Fd connection;
  std::string images_dir = config.state_dir;  // the state directory whose images are used

  bool listens() const { return !connection; }
};

// Takes the state directory's lock, in a directory whose layout this program knows. A server with
// one connection lives in a directory of its own below it, `run/0` to `run/63`: the first that
// nobody holds, so that the next such server sweeps what one that was killed has left. Sets
// config.state_dir. Error: state_in_use.
Result<StateLock> take_state(ServerLife& life);

}  // namespace hutch::cli
