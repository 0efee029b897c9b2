#include "engine/native_engine.h"

#include <boost/asio/post.hpp>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "engine/native_sandbox.h"
#include "engine/warden_link.h"

namespace hutch::engine {

class NativeEngine::Core : public std::enable_shared_from_this<NativeEngine::Core> {
 public:
  Core(boost::asio::io_context& io, const Clock& clock, NativeEngineOptions options)
      : surroundings_{io, clock, std::move(options), {}, {}} {}

  void start(Fd warden) {
    const auto weak = weak_from_this();
    link_ = std::make_shared<WardenLink>(
        surroundings_.io,
        WardenLink::Handlers{[weak](const warden::Report& report, std::vector<Fd> fds) {
                               if (const auto self = weak.lock()) {
                                 self->on_report(report, std::move(fds));
                               }
                             },
                             [weak](const Error& error) {
                               if (const auto self = weak.lock()) self->on_gone(error);
                             }});
    surroundings_.ask = [this](const warden::Request& request) { link_->ask(request); };
    surroundings_.warm_lost = [this](SandboxHandle handle) {
      if (warm_lost_) warm_lost_(handle);
    };
    link_->start(std::move(warden));
  }

  void set_answer_limits(const model::Limits& limits) {
    model::Limits& now = surroundings_.options.limits;
    now.stream_bytes = limits.stream_bytes;
    now.file_bytes = limits.file_bytes;
    now.files_bytes = limits.files_bytes;
    now.files_count = limits.files_count;
  }

  void stop() {
    link_->close();
    sandboxes_.clear();
  }

  void create(std::function<void(Result<Created>)> done) {
    if (gone_) return post_error(std::move(done), *gone_);
    const std::uint64_t handle = ++last_handle_;
    const auto sandbox = std::make_shared<NativeSandbox>(surroundings_, handle);
    sandboxes_.emplace(handle, sandbox);
    sandbox->create(std::move(done));
  }

  void run(SandboxHandle handle, std::shared_ptr<const model::ShotSpec> spec,
           std::shared_ptr<LiveOutput> live, std::function<void(Result<model::ShotResult>)> done) {
    if (gone_) return post_error(std::move(done), *gone_);
    const auto sandbox = find(static_cast<std::uint64_t>(handle));
    if (!sandbox || !sandbox->is_warm()) {
      return post_error(std::move(done), {ErrorCode::sandbox_lost, Step::run_start, 0,
                                          "the sandbox died before it got the program"});
    }
    sandbox->run(std::move(spec), std::move(live), std::move(done));
  }

  void cancel(SandboxHandle handle) {
    if (const auto sandbox = find(static_cast<std::uint64_t>(handle))) sandbox->cancel();
  }

  void destroy(SandboxHandle handle) {
    if (const auto sandbox = find(static_cast<std::uint64_t>(handle))) sandbox->destroy();
  }

  void on_warm_lost(std::function<void(SandboxHandle)> callback) {
    warm_lost_ = std::move(callback);
  }

  void on_fatal(std::function<void(Error)> callback) {
    fatal_ = std::move(callback);
    if (gone_ && fatal_) tell_fatal();
  }

  std::uint32_t live() const {
    return static_cast<std::uint32_t>(sandboxes_.size() + quarantined_.size());
  }
  std::uint32_t quarantined() const { return static_cast<std::uint32_t>(quarantined_.size()); }

 private:
  std::shared_ptr<NativeSandbox> find(std::uint64_t handle) const {
    const auto found = sandboxes_.find(handle);
    return found == sandboxes_.end() ? nullptr : found->second;
  }

  template <class Done>
  void post_error(Done done, Error error) {
    boost::asio::post(surroundings_.io,
                      [done = std::move(done), error = std::move(error)] { done(fail(error)); });
  }

  void on_report(const warden::Report& report, std::vector<Fd> fds) {
    const bool over = report.tell == warden::Tell::destroyed || report.tell == warden::Tell::failed;
    if (over && (report.flags & warden::kQuarantined) != 0) {
      quarantined_.insert(report.handle);
    } else if (over) {
      quarantined_.erase(report.handle);
    }
    const auto sandbox = find(report.handle);
    if (!sandbox) return;
    if (over) sandboxes_.erase(report.handle);
    sandbox->on_report(report, std::move(fds));
  }

  void on_gone(const Error& error) {
    gone_ = error;
    for (const auto& [handle, sandbox] : std::exchange(sandboxes_, {})) sandbox->abandon(error);
    if (fatal_) tell_fatal();
  }

  void tell_fatal() {
    boost::asio::post(surroundings_.io,
                      [fatal = std::exchange(fatal_, {}), error = *gone_] { fatal(error); });
  }

  NativeSandbox::Surroundings surroundings_;
  std::shared_ptr<WardenLink> link_;
  std::map<std::uint64_t, std::shared_ptr<NativeSandbox>> sandboxes_;
  std::set<std::uint64_t> quarantined_;
  std::uint64_t last_handle_ = 0;
  std::optional<Error> gone_;
  std::function<void(SandboxHandle)> warm_lost_;
  std::function<void(Error)> fatal_;
};

NativeEngine::NativeEngine(boost::asio::io_context& io, Fd warden, const Clock& clock,
                           NativeEngineOptions options)
    : core_(std::make_shared<Core>(io, clock, std::move(options))) {
  core_->start(std::move(warden));
}

NativeEngine::~NativeEngine() { core_->stop(); }

void NativeEngine::create(std::function<void(Result<Created>)> done) {
  core_->create(std::move(done));
}

void NativeEngine::run(SandboxHandle handle, std::shared_ptr<const model::ShotSpec> spec,
                       std::shared_ptr<LiveOutput> live,
                       std::function<void(Result<model::ShotResult>)> done) {
  core_->run(handle, std::move(spec), std::move(live), std::move(done));
}

void NativeEngine::cancel(SandboxHandle handle) { core_->cancel(handle); }
void NativeEngine::destroy(SandboxHandle handle) { core_->destroy(handle); }

void NativeEngine::on_warm_lost(std::function<void(SandboxHandle)> callback) {
  core_->on_warm_lost(std::move(callback));
}

void NativeEngine::on_fatal(std::function<void(Error)> callback) {
  core_->on_fatal(std::move(callback));
}

void NativeEngine::set_answer_limits(const model::Limits& limits) {
  core_->set_answer_limits(limits);
}
std::uint32_t NativeEngine::live() const { return core_->live(); }
std::uint32_t NativeEngine::quarantined() const { return core_->quarantined(); }

}  // namespace hutch::engine
