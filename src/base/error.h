// Our own failures, as values. How a tenant's program ended is never an Error (see
// model/outcome.h).
#pragma once

#include <string>
#include <string_view>

#include "base/step.h"

namespace hutch {

// Closed: adding a code makes the compiler show every switch that has to answer for it.
enum class ErrorCode {
  bad_request,       // the caller's fault; the message names the field, the limit and the remedy
  too_large,         // the caller sent more than a limit
  unsupported,       // a feature this build or this host does not have
  busy,              // no sandbox or no memory in time, or the line is full: try again
  draining,          // the server is stopping
  rejected,          // the sandbox refused the request (a path, files that do not fit)
  unreadable_reply,  // what came back from a sandbox did not parse
  setup_failed,      // a step of making a sandbox failed; step and errno say which
  sandbox_lost,      // a sandbox died before or while it was needed
  warden_gone,       // the privileged side ended
  unsupported_host,  // this kernel or this user cannot do what is needed
  not_permitted,     // not enough privilege
  not_found,         // no such file, image, command
  address_in_use,    // a listener's port is taken
  state_in_use,      // another process holds the state directory
  no_image,          // the image was never built
  disk_full,         // no space or no inodes left where we write
  config,            // the configuration does not make sense
  cancelled,         // the caller left or asked to stop
  io,                // a system call failed that none of the above describes
  internal,          // a broken invariant of ours
};

struct Error {
  ErrorCode code = ErrorCode::internal;
  Step step = Step::none;
  int sys_errno = 0;    // 0 when no system call is behind it
  std::string message;  // one sentence for the person who reads it, without errno's text
};

// "setup_failed" and so on, for logs and JSON.
std::string_view error_code_name(ErrorCode code);

// One line: message, step, errno's text. For logs and operators, not for tenants.
std::string describe(const Error& error);

}  // namespace hutch
