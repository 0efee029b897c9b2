// The engine of a real server: asks the warden for sandboxes, feeds them, reads what comes back,
// and says how it ended. Holds no privilege; everything it can do is in warden/protocol.h.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "engine/engine.h"
#include "model/limits.h"

namespace hutch::engine {

struct NativeEngineOptions {
  model::Limits limits;                  // the same that the warden enforces
  std::array<std::uint8_t, 32> image{};  // SHA-256 of the image
  std::vector<std::string> imports;      // the modules that a warm interpreter has imported
  std::uint32_t ready_ms = 60'000;       // from the order to a warm sandbox, at most
  std::uint32_t courier_ms = 10'000;     // without any progress of a courier, at most
  std::vector<std::string> waived;       // limits that are not held; every outcome names them
  // How long output may still come from what the program left behind in the background.
  std::uint32_t output_grace_ms = 100;
};

class NativeEngine final : public Engine {
 public:
  // `warden` is the server's end of the SEQPACKET pair. Its end of file is fatal for the engine.
  // `clock` must outlive this object.
  NativeEngine(boost::asio::io_context& io, Fd warden, const Clock& clock,
               NativeEngineOptions options);
  // Closes the warden's socket, which makes the warden take everything down and end. Callbacks that
  // are still due are dropped.
  ~NativeEngine() override;
  NativeEngine(const NativeEngine&) = delete;
  NativeEngine& operator=(const NativeEngine&) = delete;

  void create(std::function<void(Result<Created>)> done) override;
  void run(SandboxHandle handle, std::shared_ptr<const model::ShotSpec> spec,
           std::shared_ptr<LiveOutput> live,
           std::function<void(Result<model::ShotResult>)> done) override;
  void cancel(SandboxHandle handle) override;
  void destroy(SandboxHandle handle) override;
  void on_warm_lost(std::function<void(SandboxHandle)> callback) override;
  void on_fatal(std::function<void(Error)> callback) override;
  void set_answer_limits(const model::Limits& limits) override;
  std::uint32_t live() const override;
  std::uint32_t quarantined() const override;

 private:
  class Core;
  std::shared_ptr<Core> core_;
};

}  // namespace hutch::engine
