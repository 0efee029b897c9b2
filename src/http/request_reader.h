// Turns the bytes of one connection into one request, without a socket and without waiting: bytes
// go in, what is known comes out. Framing is decided here, strictly: a body has either a
// Content-Length of digits or the coding "chunked", on HTTP/1.1, and never both.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "http/head_scanner.h"
#include "http/message.h"

namespace hutch::http {

struct Head {
  std::string method;
  std::string target;
  std::vector<Field> fields;
  bool http_1_1 = true;
  bool keep_alive = true;  // what version and Connection ask for
  bool chunked = false;
  bool has_length = false;
  std::uint64_t length = 0;  // of Content-Length
  bool expects_continue = false;
  bool expects_other = false;  // an expectation that nobody can meet

  // The value of the first such field, or null.
  const std::string* field(std::string_view name) const;
  bool has_body() const { return chunked || length > 0; }
};

class RequestReader {
 public:
  explicit RequestReader(HeadLimits limits);
  ~RequestReader();

  // Takes the head off the front of `bytes` once it is complete. Yields whether it is.
  tl::expected<bool, Refusal> read_head(std::string& bytes);
  // Valid once read_head() has yielded true.
  const Head& head() const;

  // After the head: a larger body is refused with 413, a declared one before any of it is read.
  tl::expected<void, Refusal> limit_body(std::uint64_t bytes_max);
  // Takes body bytes off the front of `bytes`; never a byte of the next request. Yields whether the
  // body is complete.
  tl::expected<bool, Refusal> read_body(std::string& bytes);
  std::uint64_t body_bytes() const;
  std::string take_body();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hutch::http
