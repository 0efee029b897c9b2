#include "cli/exit_code.h"

#include <fmt/format.h>

#include "cli/output.h"

namespace hutch::cli {

ExitCode exit_code_for(ErrorCode code) {
  switch (code) {
    using enum ErrorCode;
    case bad_request:
    case config: return ExitCode::usage;
    case unsupported:
    case unsupported_host: return ExitCode::unsupported;
    case not_permitted: return ExitCode::privilege;
    case state_in_use:
    case disk_full: return ExitCode::state;
    case address_in_use: return ExitCode::port;
    case no_image: return ExitCode::no_image;
    case too_large:
    case busy:
    case draining:
    case rejected:
    case unreadable_reply:
    case setup_failed:
    case sandbox_lost:
    case warden_gone:
    case not_found:
    case cancelled:
    case io:
    case internal: return ExitCode::internal;
  }
  return ExitCode::internal;
}

std::string_view exit_code_help() {
  return R"(Exit codes:
   0  stopped as asked
  64  wrong usage, or a setting that makes no sense
  69  this kernel lacks something that is needed; `hutch doctor` says what
  70  an internal failure; the log says which
  73  the state directory is in use, not writable, or full
  75  the port of a listener is taken
  76  the image was never built
  77  not enough privilege
)";
}

int report(const Error& error) {
  print_chatter(fmt::format("hutch: {}\n", describe(error)));
  return static_cast<int>(exit_code_for(error.code));
}

}  // namespace hutch::cli
