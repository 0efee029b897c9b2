#include "http/accept.h"

#include <algorithm>
#include <optional>

namespace hutch::http {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Takes what stands before the separator off the text.
std::string_view part(std::string_view& text, char separator) {
  const std::string_view first = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(text.size(), first.size() + 1));
  return trimmed(first);
}

// Thousandths; nothing for what is no weight.
std::optional<int> weight(std::string_view text) {
  if (text.empty() || text.size() > 5 || (text[0] != '0' && text[0] != '1')) return std::nullopt;
  if (text.size() > 1 && text[1] != '.') return std::nullopt;
  int thousandths = 0;
  for (std::size_t i = 0; i < 5; ++i) {
    if (i == 1) continue;
    const char digit = i < text.size() ? text[i] : '0';
    if (digit < '0' || digit > '9') return std::nullopt;
    thousandths = thousandths * 10 + (digit - '0');
  }
  return thousandths <= 1000 ? std::optional(thousandths) : std::nullopt;
}

struct Wish {
  int weight = 0;  // 0: not asked for
  std::size_t at = 0;
};

// What one media range of a field says of `type`, as far as it names it.
int wish_in(std::string_view range, std::string_view type) {
  if (!same_name(part(range, ';'), type)) return 0;
  while (!range.empty()) {
    const std::string_view parameter = part(range, ';');
    if (!parameter.starts_with("q=") && !parameter.starts_with("Q=")) continue;
    return weight(parameter.substr(2)).value_or(0);
  }
  return 1000;
}

Wish wish(const std::vector<Field>& fields, std::string_view type) {
  Wish found;
  std::size_t at = 0;
  for (const Field& field : fields) {
    if (!same_name(field.name, "Accept")) continue;
    std::string_view list = field.value;
    for (; !list.empty(); ++at) {
      const int weight = wish_in(part(list, ','), type);
      if (weight > found.weight) found = {weight, at};
    }
  }
  return found;
}

}  // namespace

bool prefers(const std::vector<Field>& fields, std::string_view type, std::string_view plain) {
  const Wish wanted = wish(fields, type);
  const Wish other = wish(fields, plain);
  if (wanted.weight != other.weight) return wanted.weight > other.weight;
  return wanted.weight > 0 && wanted.at < other.at;
}

}  // namespace hutch::http
