// The engine's end of a courier: streams files into a sandbox, or out of one, within bounded memory
// and bounded waiting. The bytes are described in plan/courier_wire.h. Knows nothing of the
// program.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/courier_reply.h"
#include "engine/piece_writer.h"
#include "engine/watched_fd.h"
#include "model/limits.h"
#include "model/shot.h"
#include "plan/courier_wire.h"

namespace hutch::engine {

struct CourierOptions {
  model::Limits limits;
  std::chrono::milliseconds idle{10'000};  // without any progress, at most
};

// Writes the files of a spec and hears the verdict.
class FilesInClient : public std::enable_shared_from_this<FilesInClient> {
 public:
  // `done` is called once, never from inside start(), and never after this object is gone. Fails as
  // sandbox_lost: the courier ended or stood still before its verdict.
  using Done = std::function<void(Result<plan::Verdict>)>;
  FilesInClient(boost::asio::io_context& io, WatchedFd stream,
                std::shared_ptr<const model::ShotSpec> spec, const CourierOptions& options,
                Done done);
  void start();

 private:
  void write_more();
  void read_verdict();
  void expect_progress();
  void end(Result<plan::Verdict> result);

  WatchedFd stream_;
  std::shared_ptr<const model::ShotSpec> spec_;
  std::chrono::milliseconds idle_;
  Done done_;
  boost::asio::steady_timer timer_;
  PieceWriter writer_;
  std::string answer_;
};

// Asks for what the program left behind, and understands the answer.
class FilesOutClient : public std::enable_shared_from_this<FilesOutClient> {
 public:
  // As above. Fails as sandbox_lost when the courier ended too early, as unreadable_reply when it
  // stood still or its answer makes no sense.
  using Done = std::function<void(Result<ReturnedFiles>)>;
  FilesOutClient(boost::asio::io_context& io, WatchedFd stream,
                 std::shared_ptr<const model::ShotSpec> spec, const CourierOptions& options,
                 Done done);
  void start();

 private:
  void write_more();
  void read_more();
  void expect_progress();
  void end(Result<ReturnedFiles> result);

  WatchedFd stream_;
  std::chrono::milliseconds idle_;
  Done done_;
  boost::asio::steady_timer timer_;
  PieceWriter writer_;
  CourierReply reply_;
};

}  // namespace hutch::engine
