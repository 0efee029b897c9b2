#include <cstring>

#include "isolation/raw_action.h"

namespace hutch::isolation {

bool next_action(const char* block, std::size_t size, std::size_t* offset, RawAction* action) {
  if (size - *offset < sizeof(RawHeader)) return false;
  RawHeader header;
  std::memcpy(&header, block + *offset, sizeof header);
  const std::size_t text = std::size_t{header.s_size} + header.t_size;
  const std::size_t whole = sizeof(RawHeader) + ((text + 7) & ~std::size_t{7});
  if (size - *offset < whole) return false;
  action->step = static_cast<Step>(header.step);
  action->op = static_cast<Op>(header.op);
  action->a = header.a;
  action->b = header.b;
  action->c = header.c;
  action->s = block + *offset + sizeof header;
  action->t = action->s + header.s_size;
  *offset += whole;
  return true;
}

}  // namespace hutch::isolation
