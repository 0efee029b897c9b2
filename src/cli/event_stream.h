// Reads server-sent events (text/event-stream) out of the pieces in which a body arrives. Knows the
// format and nothing of what the events mean.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace hutch::cli {

struct ServerEvent {
  std::string name;  // "message" where the stream names none
  std::string data;  // its lines, with "\n" between them
};

class EventStream {
 public:
  // The largest event that is put together; room for the largest file that a server may send back.
  static constexpr std::size_t kEventBytesMax = 384_MiB;

  explicit EventStream(std::size_t event_bytes_max = kEventBytesMax)
      : event_bytes_max_(event_bytes_max) {}

  // Calls `on_event` for each event that ends within `bytes`, in their order; stops at the first
  // failure of one. Error: too_large, or what `on_event` failed as.
  Status feed(std::string_view bytes, const std::function<Status(ServerEvent)>& on_event);

 private:
  Status take_line(std::string_view line, const std::function<Status(ServerEvent)>& on_event);

  std::size_t event_bytes_max_;
  std::string line_;  // begun, and not yet ended
  ServerEvent event_;
  bool has_data_ = false;
  bool after_return_ = false;  // a "\n" that follows "\r" ends no line of its own
  bool first_line_ = true;
};

}  // namespace hutch::cli
