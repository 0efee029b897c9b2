#include "api/crusoe/errors.h"

#include <string>

namespace hutch::api::crusoe {
namespace {

http::Response try_again(const char* message) {
  http::Response response = http::error_response(503, message);
  response.fields.push_back({"Retry-After", "1"});
  return response;
}

http::Response failed(const std::string& why) {
  return http::error_response(502, "sandbox execution failed: " + why);
}

http::Response nobody_reads() {
  http::Response response;
  response.abandoned = true;
  return response;
}

}  // namespace

// Every code has its line, so that a new one cannot be forgotten. Texts of our inside (paths,
// steps, errno) stay in the log.
http::Response error_answer(const Error& error) {
  switch (error.code) {
    case ErrorCode::bad_request: return http::error_response(400, error.message);
    case ErrorCode::unsupported: return http::error_response(400, error.message);
    case ErrorCode::too_large: return http::error_response(413, error.message);
    case ErrorCode::busy: return try_again("no sandbox is available right now - try again shortly");
    case ErrorCode::draining: return try_again("the server is stopping - try again shortly");
    case ErrorCode::rejected:
      return http::error_response(502, "the sandbox returned HTTP 400: " + error.message);
    case ErrorCode::unreadable_reply:
      return http::error_response(502, "the sandbox returned a response that could not be read");
    case ErrorCode::sandbox_lost: return failed("the sandbox was lost before the run had ended");
    case ErrorCode::warden_gone: return failed("no sandbox can be made until the server restarts");
    case ErrorCode::setup_failed: return failed("the sandbox could not be set up");
    case ErrorCode::disk_full: return failed("the host has no space left");
    case ErrorCode::no_image: return failed("the sandbox image is missing");
    case ErrorCode::cancelled: return nobody_reads();
    case ErrorCode::unsupported_host:
    case ErrorCode::not_permitted:
    case ErrorCode::not_found:
    case ErrorCode::address_in_use:
    case ErrorCode::state_in_use:
    case ErrorCode::config:
    case ErrorCode::io:
    case ErrorCode::internal: return failed("internal error");
  }
  return failed("internal error");
}

}  // namespace hutch::api::crusoe
