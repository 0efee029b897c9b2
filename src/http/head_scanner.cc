#include "http/head_scanner.h"

#include <algorithm>

namespace hutch::http {
namespace {

bool is_token(char c) {
  constexpr std::string_view kPunctuation = "!#$%&'*+-.^_`|~";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kPunctuation.find(c) != std::string_view::npos;
}

// "HTTP/" and two digits; which versions are spoken is not decided here.
bool is_version(std::string_view text) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return text.size() == 8 && text.starts_with("HTTP/") && digit(text[5]) && text[6] == '.' &&
         digit(text[7]);
}

std::optional<Refusal> check_request_line(std::string_view line) {
  const auto spaces = std::count(line.begin(), line.end(), ' ');
  const bool visible =
      std::all_of(line.begin(), line.end(), [](unsigned char c) { return c >= 0x20 && c < 0x7F; });
  const std::size_t target = line.find(' ') + 1;
  if (!visible || spaces != 2 || line.front() == ' ' || target >= line.size() ||
      !is_version(line.substr(line.rfind(' ') + 1))) {
    return Refusal{400, "malformed request line"};
  }
  if (line[target] != '/') return Refusal{400, "the request target must be a path"};
  return std::nullopt;
}

}  // namespace

tl::expected<std::optional<std::size_t>, Refusal> HeadScanner::scan(std::string_view bytes) {
  for (; scanned_ < bytes.size(); ++scanned_) {
    if (auto refusal = check_byte(bytes, scanned_)) return tl::unexpected(std::move(*refusal));
    if (bytes[scanned_] != '\n') continue;
    const std::string_view line = bytes.substr(line_start_, scanned_ - 1 - line_start_);
    line_start_ = scanned_ + 1;
    if (fields_start_ != 0 && line.empty()) return ++scanned_;
    if (auto refusal = check_line(line)) return tl::unexpected(std::move(*refusal));
  }
  return std::nullopt;
}

std::optional<Refusal> HeadScanner::check_byte(std::string_view bytes, std::size_t at) const {
  const auto c = static_cast<unsigned char>(bytes[at]);
  const bool after_cr = at > line_start_ && bytes[at - 1] == '\r';
  if ((c == '\n') != after_cr) return Refusal{400, "lines of the request head must end in CR LF"};
  if ((c < 0x20 && c != '\t' && c != '\r' && c != '\n') || c == 0x7F) {
    return Refusal{400, "control byte in the request head"};
  }
  if (fields_start_ == 0) {
    // Two more for the line's end.
    if (at - line_start_ < limits_.line_bytes_max + 2) return std::nullopt;
    return Refusal{414, "the request line is longer than " +
                            std::to_string(limits_.line_bytes_max) + " bytes"};
  }
  if (at - fields_start_ < limits_.fields_bytes_max + 2) return std::nullopt;
  return Refusal{431, "the header fields are larger than " +
                          std::to_string(limits_.fields_bytes_max) + " bytes"};
}

std::optional<Refusal> HeadScanner::check_line(std::string_view line) {
  if (fields_start_ == 0) {
    fields_start_ = line_start_;
    return check_request_line(line);
  }
  if (line.front() == ' ' || line.front() == '\t') return Refusal{400, "folded header field"};
  const std::size_t colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  if (colon == std::string_view::npos || name.empty() ||
      !std::all_of(name.begin(), name.end(), is_token)) {
    return Refusal{400, "malformed header field"};
  }
  if (++fields_ > limits_.fields_max) {
    return Refusal{431, "more than " + std::to_string(limits_.fields_max) + " header fields"};
  }
  return std::nullopt;
}

}  // namespace hutch::http
