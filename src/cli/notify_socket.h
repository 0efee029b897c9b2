// Tells the service manager that started this process how far it is, so that `systemctl start`
// returns when runs are taken, or fails when they never will be.
#pragma once

#include <string_view>

namespace hutch::cli {

// Sends `state`, such as "READY=1", to the datagram socket that $NOTIFY_SOCKET names: the protocol
// of sd_notify(3). Does nothing where nobody asked, and nothing when it cannot be sent: a server
// that works does not end because nobody listens.
void tell_service_manager(std::string_view state);

}  // namespace hutch::cli
