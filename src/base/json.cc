#include "base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>
#include <charconv>
#include <cmath>
#include <exception>
#include <string>
#include <vector>

#include "base/base64.h"
#include "base/utf8.h"

namespace hutch::json {
namespace {

namespace bj = boost::json;

// Builds the value, and sees what the library's own builder lets pass: keys that come twice.
class StrictHandler {
 public:
  static constexpr std::size_t max_object_size = kValuesMax;
  static constexpr std::size_t max_array_size = kValuesMax;
  static constexpr std::size_t max_key_size = bj::string::max_size();
  static constexpr std::size_t max_string_size = bj::string::max_size();

  StrictHandler() { stack_.reset(); }
  bj::value release() { return stack_.release(); }
  const char* complaint() const { return complaint_; }

  bool on_document_begin(bj::error_code& /*ec*/) { return true; }
  bool on_document_end(bj::error_code& /*ec*/) { return true; }
  bool on_array_begin(bj::error_code& /*ec*/) { return true; }
  bool on_array_end(std::size_t n, bj::error_code& ec) {
    stack_.push_array(n);
    return count(ec);
  }
  bool on_object_begin(bj::error_code& /*ec*/) {
    objects_.push_back(keys_.size());
    return true;
  }
  bool on_object_end(std::size_t n, bj::error_code& ec) {
    const auto first = keys_.begin() + static_cast<std::ptrdiff_t>(objects_.back());
    std::sort(first, keys_.end());
    if (std::adjacent_find(first, keys_.end()) != keys_.end())
      return refuse("a key comes twice", ec);
    keys_.erase(first, keys_.end());
    objects_.pop_back();
    stack_.push_object(n);
    return count(ec);
  }
  bool on_string_part(bj::string_view s, std::size_t /*n*/, bj::error_code& /*ec*/) {
    stack_.push_chars(s);
    return true;
  }
  bool on_string(bj::string_view s, std::size_t /*n*/, bj::error_code& ec) {
    stack_.push_string(s);
    return count(ec);
  }
  bool on_key_part(bj::string_view s, std::size_t /*n*/, bj::error_code& /*ec*/) {
    key_.append(s.data(), s.size());
    stack_.push_chars(s);
    return true;
  }
  bool on_key(bj::string_view s, std::size_t /*n*/, bj::error_code& ec) {
    key_.append(s.data(), s.size());
    keys_.push_back(std::move(key_));
    key_.clear();
    stack_.push_key(s);
    return count(ec);
  }
  bool on_number_part(bj::string_view /*s*/, bj::error_code& /*ec*/) { return true; }
  bool on_int64(std::int64_t i, bj::string_view /*s*/, bj::error_code& ec) {
    stack_.push_int64(i);
    return count(ec);
  }
  bool on_uint64(std::uint64_t u, bj::string_view /*s*/, bj::error_code& ec) {
    stack_.push_uint64(u);
    return count(ec);
  }
  bool on_double(double d, bj::string_view /*s*/, bj::error_code& ec) {
    // The infinity that 1e999 becomes is no JSON number.
    if (!(d - d == 0)) return refuse("a number is too large", ec);
    stack_.push_double(d);
    return count(ec);
  }
  bool on_bool(bool b, bj::error_code& ec) {
    stack_.push_bool(b);
    return count(ec);
  }
  bool on_null(bj::error_code& ec) {
    stack_.push_null();
    return count(ec);
  }
  bool on_comment_part(bj::string_view /*s*/, bj::error_code& /*ec*/) { return true; }
  bool on_comment(bj::string_view /*s*/, bj::error_code& /*ec*/) { return true; }

 private:
  bool count(bj::error_code& ec) {
    return ++values_ <= kValuesMax || refuse("more values than one document may have", ec);
  }
  bool refuse(const char* complaint, bj::error_code& ec) {
    complaint_ = complaint;
    ec = bj::error::syntax;
    return false;
  }

  bj::value_stack stack_;
  std::string key_;                   // the key being read
  std::vector<std::string> keys_;     // of all open objects, outermost first
  std::vector<std::size_t> objects_;  // where in keys_ each open object begins
  std::size_t values_ = 0;
  const char* complaint_ = nullptr;
};

template <class Number>
void append_number(std::string& out, Number number) {
  std::array<char, 24> digits{};
  out.append(digits.data(),
             std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
}

}  // namespace

Result<bj::value> parse(std::string_view text) {
  try {
    bj::parse_options options;
    options.max_depth = kDepthMax;
    bj::basic_parser<StrictHandler> parser(options);
    bj::error_code ec;
    const std::size_t used = parser.write_some(false, text.data(), text.size(), ec);
    if (const char* complaint = parser.handler().complaint()) {
      return fail(ErrorCode::bad_request, complaint);
    }
    if (ec) return fail(ErrorCode::bad_request, ec.message());
    if (used != text.size()) return fail(ErrorCode::bad_request, "bytes follow the value");
    return parser.handler().release();
  } catch (const std::exception& error) {
    return fail(ErrorCode::bad_request, error.what());
  }
}

void append_string(std::string& out, std::string_view text) {
  if (!utf8::is_valid(text)) {
    append_string(out, utf8::replace_invalid(text));
    return;
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += '"';
  std::size_t copied = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7F) continue;
    out.append(text, copied, i - copied);
    copied = i + 1;
    out += '\\';
    switch (c) {
      case '"': out += '"'; break;
      case '\\': out += '\\'; break;
      case '\b': out += 'b'; break;
      case '\f': out += 'f'; break;
      case '\n': out += 'n'; break;
      case '\r': out += 'r'; break;
      case '\t': out += 't'; break;
      default:
        out += "u00";
        out += kDigits[c >> 4U];
        out += kDigits[c & 0xFU];
    }
  }
  out.append(text, copied, text.size() - copied);
  out += '"';
}

void Writer::separate() {
  if (out_.empty()) return;
  const char last = out_.back();
  if (last != '{' && last != '[' && last != ':') out_ += ',';
}

Writer& Writer::begin_object() {
  separate();
  out_ += '{';
  return *this;
}

Writer& Writer::end_object() {
  out_ += '}';
  return *this;
}

Writer& Writer::begin_array() {
  separate();
  out_ += '[';
  return *this;
}

Writer& Writer::end_array() {
  out_ += ']';
  return *this;
}

Writer& Writer::key(std::string_view name) {
  separate();
  append_string(out_, name);
  out_ += ':';
  return *this;
}

Writer& Writer::string(std::string_view text) {
  separate();
  append_string(out_, text);
  return *this;
}

Writer& Writer::base64(std::string_view bytes) {
  separate();
  out_ += '"';
  base64::append(out_, bytes);
  out_ += '"';
  return *this;
}

Writer& Writer::integer(std::int64_t number) {
  separate();
  append_number(out_, number);
  return *this;
}

Writer& Writer::unsigned_integer(std::uint64_t number) {
  separate();
  append_number(out_, number);
  return *this;
}

Writer& Writer::number(double number) {
  separate();
  out_ += std::isfinite(number) ? fmt::format("{}", number) : "null";
  return *this;
}

Writer& Writer::boolean(bool value) {
  separate();
  out_ += value ? "true" : "false";
  return *this;
}

}  // namespace hutch::json
