#include "cli/ready_line.h"

#include <fmt/format.h>

#include "cli/notify_socket.h"
#include "cli/output.h"
#include "cli/version.h"

namespace hutch::cli {

void say_ready(const std::string& internal_url, const std::string& public_url) {
  print_data(
      fmt::format("hutch ready internal={} public={}{}\n", internal_url, public_url, kTestingMark));
  tell_service_manager("READY=1");
}

}  // namespace hutch::cli
