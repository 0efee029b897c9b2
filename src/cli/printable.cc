#include "cli/printable.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace hutch::cli {
namespace {

// The bytes of the character that `text` starts with; 1 where there is no well-formed one.
std::size_t character_bytes(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t bytes = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  return std::min(bytes, text.size());
}

bool in(std::string_view character, std::string_view first, std::string_view last) {
  return character.size() == first.size() && character >= first && character <= last;
}

bool is_harmless(std::string_view character) {
  if (!utf8::is_valid(character)) return false;
  if (character.size() == 1) return character.front() >= ' ' && character.front() != '\x7f';
  return !in(character, "\xc2\x80", "\xc2\x9f") &&          // the second block of controls
         !in(character, "\xe2\x80\x8b", "\xe2\x80\x8f") &&  // no width, or a direction
         !in(character, "\xe2\x80\xa8", "\xe2\x80\xae") &&  // separators, embeddings
         !in(character, "\xe2\x81\xa6", "\xe2\x81\xa9") &&  // isolates
         !in(character, "\xd8\x9c", "\xd8\x9c") && !in(character, "\xef\xbb\xbf", "\xef\xbb\xbf");
}

}  // namespace

std::string printable(std::string_view text, std::size_t bytes_max) {
  std::string shown;
  while (!text.empty()) {
    if (shown.size() >= bytes_max) return shown + "...";
    std::string_view character = text.substr(0, character_bytes(text));
    if (is_harmless(character)) {
      shown += character;
    } else {
      if (!utf8::is_valid(character)) character = text.substr(0, 1);
      for (const char byte : character) {
        shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
      }
    }
    text.remove_prefix(character.size());
  }
  return shown;
}

}  // namespace hutch::cli
