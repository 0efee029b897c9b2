// A first look at the raw bytes of a request's head, byte by byte as they arrive: the limits, and
// everything that other parsers in a chain could read differently from ours (folded lines, bare CR
// or LF, NUL, a space before the colon). What passes goes to the real parser.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "base/units.h"

namespace hutch::http {

// Why a request is not served; after it the connection is closed, since nobody knows where the next
// request would begin.
struct Refusal {
  int status = 400;
  std::string message;
};

struct HeadLimits {
  std::size_t line_bytes_max = 8_KiB;     // request line; 414 beyond
  std::size_t fields_bytes_max = 32_KiB;  // all field lines together; 431 beyond
  std::size_t fields_max = 100;           // 431 beyond
};

class HeadScanner {
 public:
  explicit HeadScanner(HeadLimits limits) : limits_(limits) {}

  // `bytes` is everything that has arrived from the head's first byte on; it only grows from call
  // to call. Yields the size of the head with its empty line once that is there.
  tl::expected<std::optional<std::size_t>, Refusal> scan(std::string_view bytes);

 private:
  std::optional<Refusal> check_byte(std::string_view bytes, std::size_t at) const;
  std::optional<Refusal> check_line(std::string_view line);

  HeadLimits limits_;
  std::size_t scanned_ = 0;
  std::size_t line_start_ = 0;
  std::size_t fields_start_ = 0;  // 0 while the request line is being read
  std::size_t fields_ = 0;
};

}  // namespace hutch::http
