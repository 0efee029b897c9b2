// An engine without sandboxes, for tests: what a "program" does is written in its text. Answers are
// exact and always the same. Nothing of the text is ever executed. A run that is followed live
// writes in the order of its lines, no faster than its output is taken, and ends after that.
//
// A run's text is read line by line. These lines have an effect, all others none:
//   print(2**32)                 writes "4294967296\n" to stdout
//   #fake stdout TEXT            writes TEXT and a newline to stdout
//   #fake stderr TEXT            the same to stderr
//   #fake bytes HEX              writes these bytes to stdout
//   #fake flood N                writes N times "x" to stdout
//   #fake list                   writes "PATH SIZE\n" to stdout for each file that was sent
//   #fake args                   writes "ARGUMENT\n" to stdout for each argument
//   #fake exit N                 the program ends with status N
//   #fake signal N               a signal ends it
//   #fake timeout                its deadline passes (3 ms late, at once by the wall clock)
//   #fake memory                 it is killed at its memory limit
//   #fake processes              it ends with status 1 after it was refused a process
//   #fake disk                   it ends with status 1 on a full disk
//   #fake file NAME TEXT         comes back as a file with the bytes TEXT
//   #fake omitted NAME SIZE REASON   a file that does not come back; REASON as in answers
//   #fake deleted NAME           an input file that is gone
//   #fake duration MS            the duration that the answer tells; 38 without this line
//   #fake wait MS                the answer comes after that time, the output before it
//   #fake hang                   the answer never comes, until the run is cancelled
//   #fake lost                   the sandbox dies in the middle of the run
//   #fake unstarted              the sandbox turns out to be dead before the program reaches it
//   #fake unreadable             the files that come back cannot be parsed
//   #fake reject SENTENCE        the sandbox refuses the request
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "engine/engine.h"
#include "model/limits.h"

namespace hutch::engine {

struct FakeEngineOptions {
  model::Limits limits;
  std::chrono::milliseconds create_latency{0};
};

class FakeEngine final : public Engine {
 public:
  explicit FakeEngine(boost::asio::io_context& io, FakeEngineOptions options = {});
  ~FakeEngine() override;

  void create(std::function<void(Result<Created>)> done) override;
  void run(SandboxHandle handle, std::shared_ptr<const model::ShotSpec> spec,
           std::shared_ptr<LiveOutput> live,
           std::function<void(Result<model::ShotResult>)> done) override;
  void cancel(SandboxHandle handle) override;
  void destroy(SandboxHandle handle) override;
  void on_warm_lost(std::function<void(SandboxHandle)> callback) override;
  void on_fatal(std::function<void(Error)> callback) override;
  void set_answer_limits(const model::Limits& limits) override { options_.limits = limits; }
  std::uint32_t live() const override;
  std::uint32_t quarantined() const override { return 0; }

  // From now on creating fails like this; empty: it works again.
  void set_create_error(std::optional<Error> error) { create_error_ = std::move(error); }
  void set_create_latency(std::chrono::milliseconds latency) { options_.create_latency = latency; }
  // A warm sandbox dies by itself. No effect on a handle that is not warm.
  void kill_warm(SandboxHandle handle);
  // The privileged side ends: everything that is pending fails as warden_gone.
  void die();

  std::vector<SandboxHandle> warm() const;
  // The handles that were given to run(), in that order.
  const std::vector<SandboxHandle>& used() const { return used_; }
  std::uint64_t creates_asked() const { return creates_asked_; }

 private:
  struct Run;
  void write_live(SandboxHandle handle, const std::shared_ptr<Run>& run);
  void end_later(SandboxHandle handle, const std::shared_ptr<Run>& run);
  void finish(SandboxHandle handle, Result<model::ShotResult> result);

  boost::asio::io_context& io_;
  FakeEngineOptions options_;
  std::shared_ptr<bool> alive_;  // false once this object is gone; callbacks look at it
  std::optional<Error> create_error_;
  bool dead_ = false;
  std::uint64_t last_handle_ = 0;
  std::uint64_t creates_asked_ = 0;
  std::map<std::uint64_t, std::function<void(Result<Created>)>> creating_;
  std::set<SandboxHandle> warm_;
  std::map<SandboxHandle, std::shared_ptr<Run>> running_;
  std::vector<SandboxHandle> used_;
  std::function<void(SandboxHandle)> warm_lost_;
  std::function<void(Error)> fatal_;
};

}  // namespace hutch::engine
