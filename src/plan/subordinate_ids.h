// The ids that an ordinary user may give to processes of a user namespace: /etc/subuid and
// /etc/subgid (subuid(5), subgid(5)). Pure.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hutch::plan {

struct IdRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;

  friend bool operator==(const IdRange&, const IdRange&) = default;
};

// The lines "name:first:count" that name this user, by name or by number, in their order. Lines
// that are not understood are left out, as newuidmap(1) leaves them out.
std::vector<IdRange> parse_subordinate_ids(std::string_view text, std::string_view user, uid_t uid);

// The first `count` ids of the first range that has so many; newuidmap(1) wants them in one piece.
std::optional<IdRange> enough_ids(const std::vector<IdRange>& ranges, std::uint32_t count);

// Who else has an id of that range, by the texts of /etc/passwd and /etc/subuid: "the account bob",
// or the owner of a line; empty when nobody has. `user` itself does not count.
std::string find_clash(const IdRange& range, std::string_view user, std::string_view passwd,
                       std::string_view subordinate);

// Every id but root's that an account has, or a line gives to anybody.
std::vector<IdRange> ids_in_use(std::string_view passwd, std::string_view subordinate);
bool overlap(const IdRange& one, const IdRange& other);

// The lowest start, from 100,000 up, of `count` ids that no line of any of the texts gives away.
std::uint32_t find_free_start(const std::vector<std::string>& texts, std::uint32_t count);

}  // namespace hutch::plan
