// What differs between two configurations, and what of that a running server can take over.
#include "config/config.h"
#include "config/config_table.h"

namespace hutch::config {

std::vector<Difference> differences(const Config& was, const Config& now) {
  std::vector<Difference> found;
  for (const Field& field : fields()) {
    Difference one{std::string(field.key), show(field, was), show(field, now),
                   field.change == Change::live};
    if (one.was != one.now) found.push_back(std::move(one));
  }
  return found;
}

Config take_over_live(const Config& running, const Config& read) {
  Config merged = running;
  Config source = read;  // the slots hand out references that can be written to
  for (const Field& field : fields()) {
    if (field.change != Change::live) continue;
    std::visit([&](const auto slot) { slot(merged) = slot(source); }, field.slot);
  }
  return merged;
}

}  // namespace hutch::config
