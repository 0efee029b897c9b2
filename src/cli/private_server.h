// The server of a single `hutch run`, where no other answers: the whole of `hutch serve` in a child
// process, with one connection instead of listeners. Owns that process until it has ended and
// nothing of it is left.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "cli/command_line.h"
#include "cli/stop_signals.h"

namespace hutch::cli {

class PrivateServer {
 public:
  // Forks it. `config` is that of a server; the pool is made to hold one sandbox, for one run, and
  // limits that this host cannot hold are waived, where the settings say nothing of that. The
  // caller has one thread. The child lives in a session of its own, so that no key of a terminal
  // reaches it: it ends when the other end of socket() closes, however that comes about.
  static Result<PrivateServer> start(config::Config config, Serve serve,
                                     const StopSignals& signals);

  PrivateServer(PrivateServer&&) = default;
  PrivateServer& operator=(PrivateServer&&) = delete;

  // Our end of its connection, once.
  Fd take_socket() { return std::move(socket_); }

  // Whether it is unpacking its image, which takes some time and is done once.
  bool is_unpacking() const;

  // Waits until it has taken everything down and ended, which it does when our end is closed; not
  // beyond `patience`, nor beyond a signal. What it said when it failed, in words for people;
  // nothing when it ended well.
  std::string wait(std::chrono::milliseconds patience, const StopSignals& signals);

 private:
  PrivateServer(pid_t pid, Fd socket, Fd log)
      : pid_(pid), socket_(std::move(socket)), log_(std::move(log)) {}
  std::string end_of_log() const;
  std::string last_words() const;

  pid_t pid_;
  Fd socket_;
  Fd log_;  // a file in memory, its standard error
};

}  // namespace hutch::cli
