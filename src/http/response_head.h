// The bytes in front of a response's body.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "http/message.h"

namespace hutch::http {

enum class ConnectionField { none, close, keep_alive };

// What says where the body ends.
enum class Framing { length, chunked, until_close };

struct ResponseHead {
  std::string_view request_id;
  std::int64_t wall_ms = 0;  // for Date
  ConnectionField connection = ConnectionField::none;
  Framing framing = Framing::length;
};

// Status line, Date, Content-Type, Content-Length of the body or its framing, X-Request-Id, the
// response's own fields, Connection, and the empty line. A line break inside a value becomes a
// space, so that no value can begin a field of its own.
std::string write_response_head(const Response& response, const ResponseHead& head);

// "Sun, 06 Nov 1994 08:49:37 GMT".
std::string http_date(std::int64_t wall_ms);

}  // namespace hutch::http
