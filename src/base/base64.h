// Base64 of RFC 4648 section 4: the standard alphabet, padding required, no white space.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hutch::base64 {

// Appends the encoding of `bytes` to `out`, without a copy in between.
void append(std::string& out, std::string_view bytes);
std::string encode(std::string_view bytes);

// Empty unless `text` is exactly what encode() writes for some bytes: missing padding ("QQ"), other
// alphabets, line breaks and stray bits in the last digit ("QR==") are refused.
std::optional<std::string> decode(std::string_view text);

}  // namespace hutch::base64
