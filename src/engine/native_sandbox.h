// One sandbox of the native engine, from the order to its end: what was asked of the warden, what
// is awaited next, and who is to be told. One phase follows the other; each report of the warden
// means something in each phase, and a sandbox that has ended stays ended.
//
//   creating -> loading -> warm -> files_in -> running -> grace -> files_out -> closing
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/courier_client.h"
#include "engine/engine.h"
#include "engine/native_engine.h"
#include "engine/output_pipe.h"
#include "engine/piece_writer.h"
#include "engine/watched_fd.h"
#include "warden/protocol.h"

namespace hutch::engine {

class NativeSandbox : public std::enable_shared_from_this<NativeSandbox> {
 public:
  // What every sandbox shares; outlives them all.
  struct Surroundings {
    boost::asio::io_context& io;
    const Clock& clock;
    NativeEngineOptions options;
    std::function<void(const warden::Request&)> ask;
    std::function<void(SandboxHandle)> warm_lost;
  };
  using CreateDone = std::function<void(Result<Created>)>;
  using RunDone = std::function<void(Result<model::ShotResult>)>;

  NativeSandbox(Surroundings& surroundings, std::uint64_t handle);

  void create(CreateDone done);
  // Precondition: is_warm().
  void run(std::shared_ptr<const model::ShotSpec> spec, std::shared_ptr<LiveOutput> live,
           RunDone done);
  void cancel();
  void destroy();
  bool is_warm() const { return phase_ == Phase::warm; }

  void on_report(const warden::Report& report, std::vector<Fd> fds);
  // Whoever waits gets this error; nothing is asked of the warden any more.
  void abandon(const Error& error);

 private:
  enum class Phase { creating, loading, warm, files_in, running, grace, files_out, closing };

  // Making (native_sandbox.cc).
  void on_created(const warden::Report& report, std::vector<Fd> fds);
  Status adopt(std::vector<Fd> fds);
  void send_imports();
  void on_ready_byte();
  void fail_create(Error error);
  void on_gone(const warden::Report& report);

  // Running (native_sandbox_run.cc).
  void await_courier(void (NativeSandbox::*give_up)());
  void on_files_in(Result<plan::Verdict> verdict);
  void give_up_files_in();
  void begin_program();
  void write_code();
  void read_output();
  void await_start();
  void on_code_closed();
  void on_ended(const warden::Report& report);
  void on_ended_before_start(const warden::Report& report);
  bool program_got_its_code();
  void begin_grace();
  void on_output_ended();
  void end_output();
  void begin_files_out();
  void on_files_out(Result<ReturnedFiles> returned);
  void on_courier(std::vector<Fd> fds);
  void on_courier_failed(const warden::Report& report);
  void on_courier_ended();
  void give_up_files_out();
  void retry_files_out();
  void finish(Result<model::ShotResult> result);
  void finish_with_output(ReturnedFiles files);
  void finish_cancelled();

  void ask(warden::Ask what, std::uint32_t timeout_ms = 0);
  void close();
  void set_timer(std::chrono::milliseconds after, void (NativeSandbox::*then)());
  // The function, called on this object if it still is there.
  std::function<void()> later(void (NativeSandbox::*then)());

  Surroundings& around_;
  const std::uint64_t handle_;
  Phase phase_ = Phase::creating;
  boost::asio::steady_timer timer_;
  Nanos phase_began_{};
  CreateDone create_done_;
  RunDone run_done_;
  Created created_;

  WatchedFd code_;
  std::shared_ptr<OutputPipe> out_;
  std::shared_ptr<OutputPipe> err_;
  PieceWriter code_writer_;

  std::shared_ptr<const model::ShotSpec> spec_;
  std::shared_ptr<LiveOutput> live_;
  bool code_refused_ = false;  // its socket was closed with a part of the code unread
  bool cancelled_ = false;
  std::optional<warden::Report> ended_;
  model::Outcome outcome_;
  std::uint64_t measured_us_ = 0;

  std::shared_ptr<FilesInClient> files_in_;
  std::shared_ptr<FilesOutClient> files_out_;
  bool courier_over_ = false;  // the current courier has been reaped
  bool files_are_in_ = false;  // the verdict was good
  bool retry_awaits_end_ = false;
  int files_out_tries_ = 0;
};

}  // namespace hutch::engine
