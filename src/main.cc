// The index of the program: every object of the server, built by hand in order. What this process
// may do shrinks on the way down; serving comes last.
#include <fmt/format.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <memory>
#include <utility>

#include "api/crusoe/metrics.h"
#include "api/crusoe/routes.h"
#include "cli/backing.h"
#include "cli/command_line.h"
#include "cli/exit_code.h"
#include "cli/host_check.h"
#include "cli/privileges.h"
#include "cli/process_setup.h"
#include "cli/ready_line.h"
#include "cli/reload.h"
#include "cli/run_log.h"
#include "cli/server_life.h"
#include "cli/shutdown.h"
#include "cli/signals.h"
#include "cli/state_lock.h"
#include "cli/user_namespace.h"
#include "cli/wiring.h"
#include "http/server.h"

namespace hutch {
namespace {

namespace crusoe = api::crusoe;

Result<http::ServerOptions> listener(const config::Listener& settings, std::string_view name,
                                     crusoe::Metrics& metrics, Log& log) {
  const config::Address address = TRY(config::parse_address(settings.listen));
  http::ServerOptions options{.address = {.host = address.host, .port = address.port},
                              .hosts = settings.hosts};
  options.served = [&metrics, &log, name](const http::Served& served) {
    metrics.observe(served);
    log.info("request", "answered",
             {{"request_id", served.id},
              {"listener", name},
              {"method", served.method},
              {"route", served.route},
              {"status", served.status},
              {"bytes_in", served.body_bytes_in},
              {"bytes_out", served.body_bytes_out},
              {"duration_us", served.duration.count() / 1000}});
  };
  return options;
}

Status listen(http::Server& server, std::string_view flag) {
  Status status = server.listen();
  if (!status && status.error().code == ErrorCode::address_in_use) {
    status.error().message += fmt::format("; choose another with {}", flag);
  }
  return status;
}

// What a reload hands new settings to.
cli::Reload::Calls taken_over_by(service::Shots& shots, engine::Engine& engine,
                                 http::Server& internal, http::Server& outside) {
  return {.pool = [&](const auto& options) { shots.set_pool(options); },
          .answer_limits = [&](const auto& limits) { engine.set_answer_limits(limits); },
          .internal_hosts = [&](const auto& names) { internal.set_hosts(names); },
          .public_hosts = [&](const auto& names) { outside.set_hosts(names); }};
}

// Serves until a signal, a failure or the end of its only connection says stop; the exit code.
Result<int> serve_until_stopped(cli::ServerLife life) {
  TRY(cli::set_process_up(life.connection));
  const config::Config& config = life.config;
  const bool listens = life.listens();
  const SystemClock clock;
  SystemRandom random;
  Log log(clock, {.level = log_level_named(config.log.level)});
  const bool native = config.engine == "native";

  if (native) TRY(cli::admit_host(config, log));
  const bool ordinary = cli::is_ordinary_user();
  if (native && ordinary) TRY(cli::enter_user_namespace());
  const cli::User user = TRY(cli::find_server_user(config.server.user, native && ordinary));
  cli::StateLock lock = TRY(cli::take_state(life));
  cli::Backing backing = TRY(cli::Backing::start(life, user, lock, log));

  boost::asio::io_context io(1);
  const auto engine = backing.make_engine(io, clock);
  cli::Shutdown shutdown(io, log);
  const int lost = static_cast<int>(cli::ExitCode::internal);
  service::Shots shots(io, *engine, clock, random, service::read_host_memory,
                       cli::shots_options(config),
                       cli::log_observers(log, [&] { shutdown.fail(lost); }));

  crusoe::Metrics metrics(shots);
  http::Server internal(io, clock, random, TRY(listener(config.internal, "internal", metrics, log)),
                        crusoe::internal_routes({.shots = shots,
                                                 .metrics = metrics,
                                                 .body_bytes_max = config.execute.body_bytes_max,
                                                 .image = {.name = backing.image_name(),
                                                           .digest = backing.image_digest()},
                                                 .draining = [&] { return shutdown.begun(); }}));
  http::Server outside(io, clock, random, TRY(listener(config.public_door, "public", metrics, log)),
                       crusoe::public_routes());
  if (listens) {
    TRY(listen(internal, "--internal"));
    TRY(listen(outside, "--public"));
  } else {
    TRY(internal.adopt(std::move(life.connection), [&] { shutdown.stop_now(); }));
  }

  TRY(lock.write_pid("server", ::getpid()));
  if (native) TRY(lock.write_pid("warden", backing.warden()->pid()));
  if (native) cli::survive_memory_shortage();
  TRY(cli::drop_privileges(user));

  shutdown.set_calls({.refuse_new = [&] { internal.drain(), outside.drain(); },
                      .drain_runs = [&](auto drained) { shots.drain(std::move(drained)); },
                      .stop_runs = [&] { shots.stop_now(); },
                      .connections = [&] { return internal.connections() + outside.connections(); },
                      .close = [&] { internal.close(), outside.close(); }});
  const auto reap = [&] { native ? backing.warden()->reap() : void(); };
  cli::Reload reload(config, log, taken_over_by(shots, *engine, internal, outside));
  const auto stop = [&] { shutdown.stop(); };
  const auto hang_up = [&] { listens ? reload.run() : void(); };  // one run reads no settings again
  const cli::Signals signals(io, log, {.stop = stop, .child_ended = reap, .reload = hang_up});
  Status filled;
  shots.start([&](Status status) {
    filled = std::move(status);
    // A step that is made to fail is asked about from outside, so that server has to stay.
    if (!filled && config.testing.fail_step.empty()) return shutdown.fail(lost);
    log.info("ready", "runs are taken", {{"internal", internal.url()}, {"public", outside.url()}});
    if (listens) cli::say_ready(internal.url(), outside.url());
  });
  io.run();
  if (!filled && config.testing.fail_step.empty()) return fail(filled.error());
  return shutdown.exit_code();
}

int serve(cli::ServerLife life) {
  const Result<int> exit_code = serve_until_stopped(std::move(life));
  return exit_code ? *exit_code : cli::report(exit_code.error());
}

}  // namespace
}  // namespace hutch

int main(int argc, char** argv) { return hutch::cli::run_command_line(argc, argv, hutch::serve); }
