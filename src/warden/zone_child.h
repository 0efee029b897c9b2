// The warden's two clones that leave the host for the zone, between clone and exec.
#pragma once

#include <cstddef>

#include "base/step.h"

namespace hutch::warden {

struct ZoneChild {
  const char* actions = nullptr;  // encoded
  std::size_t actions_size = 0;
  int report = -1;    // SEQPACKET to the warden
  int lifeline = -1;  // read end
  int program = -1;   // the static program, as a memory file
  int anchor = -1;    // pidfd, for the launcher's way in
  int socket = -1;    // the launcher's end
  int plan = -1;      // memory file
  Step fail_step = Step::none;
};

// Carries the zone's actions out and becomes the anchor. Reports a failure as an ActReport; success
// shows as the end of the report socket.
[[noreturn]] void become_anchor(const ZoneChild& child);

// Enters the zone, clones the launcher there as a child of the warden, sends its pidfd over
// `report` beside an ActReport, and exits.
[[noreturn]] void become_launcher_maker(const ZoneChild& child);

}  // namespace hutch::warden
