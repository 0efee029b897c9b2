// Text from elsewhere, made fit for a terminal: what it could obey or be fooled by is shown
// instead.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hutch::cli {

// Control characters, marks that turn the direction of writing, line separators and bytes that are
// no UTF-8 become \xNN, byte by byte; the rest stays. At most about `bytes_max` bytes, then "...".
std::string printable(std::string_view text, std::size_t bytes_max = 1024);

}  // namespace hutch::cli
