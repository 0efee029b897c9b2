// Sizes. 1 MB in the product's limits is 1 MiB everywhere.
#pragma once

#include <cstdint>

namespace hutch {

constexpr std::uint64_t operator""_KiB(unsigned long long n) { return n << 10U; }
constexpr std::uint64_t operator""_MiB(unsigned long long n) { return n << 20U; }
constexpr std::uint64_t operator""_GiB(unsigned long long n) { return n << 30U; }

}  // namespace hutch
