// Where randomness comes from: the kernel's generator, or a seed in tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>

namespace hutch {

class Random {
 public:
  virtual ~Random() = default;
  virtual void fill(std::span<std::uint8_t> bytes) = 0;

  // `length` characters of lowercase base32 (RFC 4648 alphabet), 5 random bits each.
  std::string base32(std::size_t length);
  // `length` lowercase hexadecimal digits.
  std::string hex(std::size_t length);
};

class SystemRandom final : public Random {
 public:
  void fill(std::span<std::uint8_t> bytes) override;
};

// Repeatable; for simulations and golden tests only.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : engine_(seed) {}
  void fill(std::span<std::uint8_t> bytes) override;

 private:
  std::mt19937_64 engine_;
};

}  // namespace hutch
