#include "base/error.h"

#include <cstring>

namespace hutch {

std::string_view error_code_name(ErrorCode code) {
  switch (code) {
    using enum ErrorCode;
    case bad_request: return "bad_request";
    case too_large: return "too_large";
    case unsupported: return "unsupported";
    case busy: return "busy";
    case draining: return "draining";
    case rejected: return "rejected";
    case unreadable_reply: return "unreadable_reply";
    case setup_failed: return "setup_failed";
    case sandbox_lost: return "sandbox_lost";
    case warden_gone: return "warden_gone";
    case unsupported_host: return "unsupported_host";
    case not_permitted: return "not_permitted";
    case not_found: return "not_found";
    case address_in_use: return "address_in_use";
    case state_in_use: return "state_in_use";
    case no_image: return "no_image";
    case disk_full: return "disk_full";
    case config: return "config";
    case cancelled: return "cancelled";
    case io: return "io";
    case internal: return "internal";
  }
  return "internal";
}

std::string describe(const Error& error) {
  std::string text =
      error.message.empty() ? std::string(error_code_name(error.code)) : error.message;
  if (error.step != Step::none) {
    text += " (step ";
    text += step_name(error.step);
    text += ")";
  }
  if (error.sys_errno != 0) {
    text += ": ";
    text += std::strerror(error.sys_errno);
  }
  return text;
}

}  // namespace hutch
