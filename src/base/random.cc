#include "base/random.h"

#include <sys/random.h>

#include <cstdlib>
#include <vector>

namespace hutch {
namespace {

std::string draw(Random& random, std::size_t length, std::string_view alphabet) {
  std::vector<std::uint8_t> bytes(length);
  random.fill(bytes);
  std::string text(length, ' ');
  for (std::size_t i = 0; i < length; ++i) text[i] = alphabet[bytes[i] % alphabet.size()];
  return text;
}

}  // namespace

// Both alphabets' sizes divide 256, so the remainder is not skewed.
std::string Random::base32(std::size_t length) {
  return draw(*this, length, "abcdefghijklmnopqrstuvwxyz234567");
}

std::string Random::hex(std::size_t length) { return draw(*this, length, "0123456789abcdef"); }

void SystemRandom::fill(std::span<std::uint8_t> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::getrandom(bytes.data() + done, bytes.size() - done, 0);
    // Only EINTR is possible for a valid buffer; going on without randomness would break every id.
    if (got > 0) done += static_cast<std::size_t>(got);
  }
}

void SeededRandom::fill(std::span<std::uint8_t> bytes) {
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(engine_());
}

}  // namespace hutch
