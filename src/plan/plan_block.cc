#include <cstddef>
#include <cstring>
#include <string>

#include "plan/launcher_wire.h"
#include "plan/plan.h"

namespace hutch::plan {
namespace {

std::uint32_t append(std::string* block, const std::string& part) {
  block->append(part);
  block->append((8 - block->size() % 8) % 8, '\0');
  return static_cast<std::uint32_t>(part.size());
}

std::string joined(const std::vector<std::string>& strings) {
  std::string text;
  for (const std::string& one : strings) text.append(one).push_back('\0');
  return text;
}

}  // namespace

std::string encode_plan(const Plan& plan) {
  PlanBlock header;
  static_assert(sizeof header % 8 == 0);
  std::string block(sizeof header, '\0');
  header.init_bytes = append(&block, isolation::encode_actions(plan.init));
  header.program_bytes = append(&block, isolation::encode_actions(plan.program));
  header.execute_bytes = append(&block, isolation::encode_actions(plan.execute));
  header.courier_bytes = append(&block, isolation::encode_actions(plan.courier));
  for (std::size_t kind = 0; kind < plan.filters.size(); ++kind) {
    const auto& filter = plan.filters[kind];
    const auto* bytes = reinterpret_cast<const char*>(filter.data());
    header.filter_bytes[kind] =
        append(&block, std::string(bytes, filter.size() * sizeof(sock_filter)));
  }
  header.argv_bytes = append(&block, joined(plan.argv));
  header.envp_bytes = append(&block, joined(plan.envp));
  std::memcpy(block.data(), &header, sizeof header);
  return block;
}

}  // namespace hutch::plan
