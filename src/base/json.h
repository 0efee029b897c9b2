// Strict JSON in, safe JSON out. The parser takes what RFC 8259 allows and nothing that two readers
// could understand differently; the writer never lets a broken character out.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hutch::json {

constexpr std::size_t kDepthMax = 64;
// Values and keys of one document; bounds the memory that a few bytes of input can ask for.
constexpr std::size_t kValuesMax = 1'000'000;

// bad_request, with a reason for logs and tests, when `text` is not one JSON value: syntax, bytes
// after it, a byte-order mark, comments, NaN or Infinity, numbers beyond a double, ill-formed
// UTF-8, escapes of single surrogates, a key twice in one object, more than kDepthMax or
// kValuesMax. Numbers: int64, else uint64, else double, by how they are written ("1.0" is a
// double).
Result<boost::json::value> parse(std::string_view text);

// Appends `text` as a JSON string with its quotes. Ill-formed UTF-8 becomes U+FFFD.
void append_string(std::string& out, std::string_view text);

// Writes one compact document in the order of the calls; puts the commas. The caller closes what it
// opens: keys only inside objects, one value after each key.
class Writer {
 public:
  Writer& begin_object();
  Writer& end_object();
  Writer& begin_array();
  Writer& end_array();
  Writer& key(std::string_view name);
  Writer& string(std::string_view text);
  Writer& base64(std::string_view bytes);
  Writer& integer(std::int64_t number);
  Writer& unsigned_integer(std::uint64_t number);
  Writer& number(
      double number);  // the shortest digits that give it back; null where it is not finite
  Writer& boolean(bool value);

  // Room for this many bytes in all, where the caller knows that much will come.
  void reserve(std::size_t bytes) { out_.reserve(bytes); }
  std::string take() { return std::move(out_); }

 private:
  void separate();

  std::string out_;
};

}  // namespace hutch::json
