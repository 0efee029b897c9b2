// The kernel's system call numbers by name, for the two architectures filters are compiled for.
// Owns names and numbers; which of them a sandbox may use is decided in plan/filter_policy.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace hutch::isolation {

enum class Arch { x86_64, aarch64 };

struct SyscallEntry {
  std::uint32_t number;
  std::string_view name;
};

// Ascending by number. Includes calls newer than the oldest kernel that Hutch runs on.
std::span<const SyscallEntry> syscall_table(Arch arch);
// nullopt: this architecture has no call of that name.
std::optional<std::uint32_t> syscall_number(Arch arch, std::string_view name);
// Empty for a number that the table does not know.
std::string_view syscall_name(Arch arch, std::uint32_t number);

}  // namespace hutch::isolation
