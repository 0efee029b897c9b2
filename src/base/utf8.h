// UTF-8 at the edges: what a tenant's program writes is any bytes, what leaves is valid text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hutch::utf8 {

bool is_valid(std::string_view bytes);

// A copy in which each ill-formed sequence (a bad lead byte, or a lead byte with all the
// continuation bytes behind it) is one U+FFFD. Valid text comes back unchanged, NUL included.
std::string replace_invalid(std::string_view bytes);

// How many bytes at the end of `bytes` are the beginning of a character whose rest is missing: 0 to
// 3. Bytes that cannot become a character count as 0.
std::size_t unfinished_suffix(std::string_view bytes);

// How many bytes at the start of `bytes` can only belong to a character that began before: 0 to 3.
std::size_t orphaned_prefix(std::string_view bytes);

// The first `bytes_max` bytes at most, never ending inside a character.
std::string_view prefix(std::string_view text, std::size_t bytes_max);

}  // namespace hutch::utf8
