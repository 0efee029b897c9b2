#include "base/utf8.h"

#include <utf8.h>

#include <algorithm>
#include <iterator>

namespace hutch::utf8 {
namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// How long a character is that starts with this byte; 0 when none does.
std::size_t length_by_lead(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte < 0x80) return 1;
  if (byte >= 0xC2 && byte <= 0xDF) return 2;
  if (byte >= 0xE0 && byte <= 0xEF) return 3;
  if (byte >= 0xF0 && byte <= 0xF4) return 4;
  return 0;
}

}  // namespace

bool is_valid(std::string_view bytes) { return ::utf8::is_valid(bytes.begin(), bytes.end()); }

std::string replace_invalid(std::string_view bytes) {
  if (is_valid(bytes)) return std::string(bytes);
  std::string text;
  text.reserve(bytes.size() + bytes.size() / 8);
  ::utf8::replace_invalid(bytes.begin(), bytes.end(), std::back_inserter(text));
  return text;
}

std::size_t unfinished_suffix(std::string_view bytes) {
  const std::size_t reach = std::min<std::size_t>(3, bytes.size());
  for (std::size_t back = 1; back <= reach; ++back) {
    const char c = bytes[bytes.size() - back];
    if (is_continuation(c)) continue;
    return length_by_lead(c) > back ? back : 0;
  }
  return 0;
}

std::size_t orphaned_prefix(std::string_view bytes) {
  const std::size_t reach = std::min<std::size_t>(3, bytes.size());
  std::size_t count = 0;
  while (count < reach && is_continuation(bytes[count])) ++count;
  return count;
}

std::string_view prefix(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  text = text.substr(0, bytes_max);
  return text.substr(0, text.size() - unfinished_suffix(text));
}

}  // namespace hutch::utf8
