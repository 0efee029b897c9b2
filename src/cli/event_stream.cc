#include "cli/event_stream.h"

#include <utility>

namespace hutch::cli {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

Status EventStream::feed(std::string_view bytes,
                         const std::function<Status(ServerEvent)>& on_event) {
  while (!bytes.empty()) {
    if (std::exchange(after_return_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const std::size_t end = bytes.find_first_of("\r\n");
    line_ += bytes.substr(0, end);
    if (line_.size() + event_.data.size() > event_bytes_max_) {
      return fail(ErrorCode::too_large, "the server sent an event that is too large");
    }
    if (end == std::string_view::npos) return {};
    after_return_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    const std::string line = std::exchange(line_, {});
    TRY(take_line(line, on_event));
  }
  return {};
}

Status EventStream::take_line(std::string_view line,
                              const std::function<Status(ServerEvent)>& on_event) {
  if (std::exchange(first_line_, false) && line.starts_with(kByteOrderMark)) {
    line.remove_prefix(kByteOrderMark.size());
  }
  if (line.empty()) {
    ServerEvent event = std::exchange(event_, {});
    if (!std::exchange(has_data_, false)) return {};
    if (event.name.empty()) event.name = "message";
    return on_event(std::move(event));
  }
  const std::size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "event") event_.name = value;
  if (field == "data") {
    if (std::exchange(has_data_, true)) event_.data += '\n';
    event_.data += value;
  }
  return {};
}

}  // namespace hutch::cli
