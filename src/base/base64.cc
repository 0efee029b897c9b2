#include "base/base64.h"

#include <sodium.h>

namespace hutch::base64 {

void append(std::string& out, std::string_view bytes) {
  const std::size_t before = out.size();
  // The library counts and writes a closing NUL.
  const std::size_t encoded =
      sodium_base64_encoded_len(bytes.size(), sodium_base64_VARIANT_ORIGINAL);
  out.resize(before + encoded);
  sodium_bin2base64(out.data() + before, encoded,
                    reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                    sodium_base64_VARIANT_ORIGINAL);
  out.pop_back();
}

std::string encode(std::string_view bytes) {
  std::string out;
  append(out, bytes);
  return out;
}

std::optional<std::string> decode(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes(text.size() / 4 * 3, '\0');
  std::size_t size = 0;
  const int failed =
      sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), text.data(),
                        text.size(), nullptr, &size, nullptr, sodium_base64_VARIANT_ORIGINAL);
  if (failed != 0) return std::nullopt;
  bytes.resize(size);
  return bytes;
}

}  // namespace hutch::base64
