#include "http/request_reader.h"

#include <algorithm>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <limits>
#include <utility>

namespace hutch::http {
namespace {

namespace bh = boost::beast::http;

// A chunk's line or the trailer may be this long; both are thrown away.
constexpr std::size_t kChunkLineBytesMax = 8_KiB;

Refusal too_large(std::uint64_t bytes_max) {
  return {413, "request body is larger than " + std::to_string(bytes_max) + " bytes"};
}

Refusal refusal_of(const boost::beast::error_code& ec) {
  if (ec == bh::error::bad_version) return {505, "HTTP/1.1 and HTTP/1.0 are spoken here"};
  return {400, "malformed request: " + ec.message()};
}

std::size_t count_fields(const Head& head, std::string_view name) {
  return static_cast<std::size_t>(
      std::count_if(head.fields.begin(), head.fields.end(),
                    [&](const Field& field) { return same_name(field.name, name); }));
}

// At most 18 digits, so that the number always fits.
bool is_length(const std::string& text) {
  return !text.empty() && text.size() <= 18 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool has_bare_line_feed(std::string_view bytes) {
  for (std::size_t at = bytes.find('\n'); at != std::string_view::npos;
       at = bytes.find('\n', at + 1)) {
    if (at == 0 || bytes[at - 1] != '\r') return true;
  }
  return false;
}

tl::expected<void, Refusal> decide_framing(Head& head) {
  const std::size_t lengths = count_fields(head, "Content-Length");
  const std::size_t codings = count_fields(head, "Transfer-Encoding");
  if (lengths > 0 && codings > 0) {
    return tl::unexpected(Refusal{400, "both Content-Length and Transfer-Encoding"});
  }
  if (lengths > 1) return tl::unexpected(Refusal{400, "more than one Content-Length"});
  if (codings > 0) {
    if (!head.http_1_1) return tl::unexpected(Refusal{400, "Transfer-Encoding on HTTP/1.0"});
    if (codings > 1 || *head.field("Transfer-Encoding") != "chunked") {
      return tl::unexpected(Refusal{400, "the only Transfer-Encoding understood is chunked"});
    }
    head.chunked = true;
  }
  if (const std::string* length = head.field("Content-Length")) {
    if (!is_length(*length)) return tl::unexpected(Refusal{400, "Content-Length is not a number"});
    head.has_length = true;
    head.length = std::stoull(*length);
  }
  return {};
}

tl::expected<void, Refusal> check_fields(Head& head) {
  const std::size_t hosts = count_fields(head, "Host");
  if (hosts > 1) return tl::unexpected(Refusal{400, "more than one Host"});
  if (hosts == 0 && head.http_1_1) return tl::unexpected(Refusal{400, "no Host"});
  for (const char* name : {"Authorization", "Origin", "Expect"}) {
    if (count_fields(head, name) > 1) {
      return tl::unexpected(Refusal{400, std::string("more than one ") + name});
    }
  }
  if (const std::string* expect = head.field("Expect")) {
    head.expects_continue = same_name(*expect, "100-continue");
    head.expects_other = !head.expects_continue;
  }
  return decide_framing(head);
}

}  // namespace

const std::string* Head::field(std::string_view name) const {
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const Field& field) { return same_name(field.name, name); });
  return found == fields.end() ? nullptr : &found->value;
}

struct RequestReader::Impl {
  explicit Impl(HeadLimits limits) : scanner(limits) {
    parser.header_limit(
        static_cast<std::uint32_t>(limits.line_bytes_max + limits.fields_bytes_max + 1_KiB));
    parser.body_limit(boost::none);  // limit_body() knows the route's
    parser.eager(false);
  }

  HeadScanner scanner;
  bh::request_parser<bh::string_body> parser;
  Head head;
  std::uint64_t body_bytes_max = 0;
  bool at_start = true;
};

RequestReader::RequestReader(HeadLimits limits) : impl_(std::make_unique<Impl>(limits)) {}
RequestReader::~RequestReader() = default;

const Head& RequestReader::head() const { return impl_->head; }

tl::expected<bool, Refusal> RequestReader::read_head(std::string& bytes) {
  if (impl_->at_start) {
    // Some clients end a body with a line end that its length does not count.
    if (bytes.size() < 2 && (bytes.empty() || bytes == "\r")) return false;
    if (bytes.starts_with("\r\n")) bytes.erase(0, 2);
    impl_->at_start = false;
  }
  const auto size = impl_->scanner.scan(bytes);
  if (!size) return tl::unexpected(size.error());
  if (!*size) return false;

  boost::beast::error_code ec;
  const std::size_t used = impl_->parser.put(boost::asio::buffer(bytes.data(), **size), ec);
  if (ec && ec != bh::error::need_more) return tl::unexpected(refusal_of(ec));
  if (used != **size || !impl_->parser.is_header_done()) {
    return tl::unexpected(Refusal{400, "malformed request head"});
  }
  bytes.erase(0, used);

  const auto& message = impl_->parser.get();
  Head& head = impl_->head;
  head.method = std::string(message.method_string());
  head.target = std::string(message.target());
  head.http_1_1 = message.version() == 11;
  head.keep_alive = impl_->parser.keep_alive();
  for (const auto& field : message) {
    head.fields.push_back({std::string(field.name_string()), std::string(field.value())});
  }
  if (auto checked = check_fields(head); !checked) return tl::unexpected(checked.error());
  // Two readings of one head: they must not differ.
  if (impl_->parser.chunked() != head.chunked) {
    return tl::unexpected(Refusal{400, "unclear request framing"});
  }
  return true;
}

tl::expected<void, Refusal> RequestReader::limit_body(std::uint64_t bytes_max) {
  impl_->body_bytes_max = bytes_max;
  if (impl_->head.length > bytes_max) return tl::unexpected(too_large(bytes_max));
  impl_->parser.body_limit(bytes_max);
  impl_->parser.eager(true);
  return {};
}

tl::expected<bool, Refusal> RequestReader::read_body(std::string& bytes) {
  if (!impl_->head.has_body()) return true;
  boost::beast::error_code ec;
  std::size_t used = 0;
  // The parser stops after each chunk's line.
  while (!impl_->parser.is_done() && used < bytes.size()) {
    const std::size_t step =
        impl_->parser.put(boost::asio::buffer(bytes.data() + used, bytes.size() - used), ec);
    used += step;
    if (ec || step == 0) break;
  }
  bytes.erase(0, used);
  if (ec == bh::error::body_limit) return tl::unexpected(too_large(impl_->body_bytes_max));
  if (ec && ec != bh::error::need_more) return tl::unexpected(refusal_of(ec));
  if (impl_->parser.is_done()) return true;
  // What is left is the beginning of a chunk's line or of the trailer.
  if (bytes.size() > kChunkLineBytesMax) {
    return tl::unexpected(Refusal{400, "a chunk's line or the trailer is too long"});
  }
  if (has_bare_line_feed(bytes)) {
    return tl::unexpected(Refusal{400, "lines of a chunked body must end in CR LF"});
  }
  return false;
}

std::uint64_t RequestReader::body_bytes() const { return impl_->parser.get().body().size(); }

std::string RequestReader::take_body() { return std::move(impl_->parser.get().body()); }

}  // namespace hutch::http
