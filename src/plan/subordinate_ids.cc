#include "plan/subordinate_ids.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

namespace hutch::plan {
namespace {

bool read_number(std::string_view text, std::uint32_t* number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), *number);
  return !text.empty() && parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size();
}

struct Line {
  std::string_view owner;
  IdRange range;
};

// Lines that are not understood are left out.
std::vector<Line> parse_lines(std::string_view text) {
  std::vector<Line> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::array<std::string_view, 3> fields;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const std::size_t colon = i + 1 < fields.size() ? line.find(':') : line.size();
      if (colon == std::string_view::npos) break;
      fields[i] = line.substr(0, colon);
      line.remove_prefix(std::min(colon + 1, line.size()));
    }
    IdRange range;
    if (fields[0].empty()) continue;
    if (!read_number(fields[1], &range.first) || !read_number(fields[2], &range.count)) continue;
    lines.push_back({fields[0], range});
  }
  return lines;
}

// The number in the third field of a line of /etc/passwd, and the name in its first.
std::vector<Line> parse_accounts(std::string_view text) {
  std::vector<Line> accounts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t first = line.find(':');
    if (first == std::string_view::npos) continue;
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::size_t third = std::min(line.find(':', second + 1), line.size());
    IdRange id{0, 1};
    if (!read_number(line.substr(second + 1, third - second - 1), &id.first)) continue;
    accounts.push_back({line.substr(0, first), id});
  }
  return accounts;
}

}  // namespace

std::vector<IdRange> parse_subordinate_ids(std::string_view text, std::string_view user,
                                           uid_t uid) {
  const std::string number = std::to_string(uid);
  std::vector<IdRange> ranges;
  for (const Line& line : parse_lines(text)) {
    if (line.owner == user || line.owner == number) ranges.push_back(line.range);
  }
  return ranges;
}

std::string find_clash(const IdRange& range, std::string_view user, std::string_view passwd,
                       std::string_view subordinate) {
  for (const Line& account : parse_accounts(passwd)) {
    if (account.range.first != 0 && overlap(range, account.range)) {
      return "the account " + std::string(account.owner);
    }
  }
  for (const Line& line : parse_lines(subordinate)) {
    if (line.owner != user && overlap(range, line.range)) return std::string(line.owner);
  }
  return {};
}

bool overlap(const IdRange& one, const IdRange& other) {
  return one.first < std::uint64_t{other.first} + other.count &&
         other.first < std::uint64_t{one.first} + one.count;
}

std::vector<IdRange> ids_in_use(std::string_view passwd, std::string_view subordinate) {
  std::vector<IdRange> ranges;
  for (const Line& account : parse_accounts(passwd)) {
    if (account.range.first != 0) ranges.push_back(account.range);
  }
  for (const Line& line : parse_lines(subordinate)) ranges.push_back(line.range);
  return ranges;
}

std::uint32_t find_free_start(const std::vector<std::string>& texts, std::uint32_t count) {
  IdRange wanted{100'000, count};
  std::vector<IdRange> taken;
  for (const std::string& text : texts) {
    for (const Line& line : parse_lines(text)) taken.push_back(line.range);
  }
  std::ranges::sort(taken, {}, &IdRange::first);
  for (const IdRange& range : taken) {
    if (overlap(wanted, range)) wanted.first = range.first + range.count;
  }
  return wanted.first;
}

std::optional<IdRange> enough_ids(const std::vector<IdRange>& ranges, std::uint32_t count) {
  const auto found = std::ranges::find_if(
      ranges, [count](const IdRange& range) { return range.count >= count && range.first != 0; });
  if (found == ranges.end()) return std::nullopt;
  return IdRange{found->first, count};
}

}  // namespace hutch::plan
