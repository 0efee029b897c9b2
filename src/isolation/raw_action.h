// The flat form of actions, as read between clone and exec: pointers into a byte block, nothing
// owned, nothing allocated.
#pragma once

#include <cstddef>
#include <cstdint>

#include "isolation/action.h"

namespace hutch::isolation {

struct RawHeader {
  std::uint16_t step;
  std::uint16_t op;
  std::uint32_t s_size;  // with its NUL
  std::uint32_t t_size;  // with its NUL
  std::uint32_t pad;
  std::int64_t a;
  std::int64_t b;
  std::int64_t c;
};
static_assert(sizeof(RawHeader) == 40);

struct RawAction {
  Step step{};
  Op op{};
  std::int64_t a = 0;
  std::int64_t b = 0;
  std::int64_t c = 0;
  const char* s = nullptr;
  const char* t = nullptr;
};

// Reads the action at `*offset` and moves on; false at the end of the block. The block is our own
// and sealed, so it is trusted to be well formed; sizes are checked all the same.
bool next_action(const char* block, std::size_t size, std::size_t* offset, RawAction* action);

}  // namespace hutch::isolation
