#include "http/host_rule.h"

#include <algorithm>

namespace hutch::http {
namespace {

std::string lower(std::string_view text) {
  std::string copy(text);
  for (char& c : copy) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return copy;
}

// "name" of "name", "name:80", "[::1]" and "[::1]:80"; empty when it is none of these.
std::string_view without_port(std::string_view host) {
  const std::size_t from = host.starts_with('[') ? host.find(']') : 0;
  if (from == std::string_view::npos) return {};
  const std::size_t colon = host.find(':', from);
  if (colon == std::string_view::npos) return host;
  const std::string_view port = host.substr(colon + 1);
  const bool digits =
      !port.empty() && port.size() <= 5 &&
      std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits ? host.substr(0, colon) : std::string_view();
}

}  // namespace

HostRule::HostRule(std::string_view bound_address, const std::vector<std::string>& further)
    : names_{"localhost", "127.0.0.1", "[::1]"} {
  if (bound_address != "0.0.0.0" && bound_address != "::") {
    const bool v6 = bound_address.find(':') != std::string_view::npos;
    names_.push_back(v6 ? "[" + lower(bound_address) + "]" : lower(bound_address));
  }
  for (const std::string& name : further) names_.push_back(lower(name));
}

bool HostRule::host_allowed(std::string_view host) const {
  const std::string whole = lower(host);
  const std::string_view name = without_port(whole);
  if (name.empty()) return false;
  return std::any_of(names_.begin(), names_.end(),
                     [&](const std::string& known) { return known == name || known == whole; });
}

bool HostRule::origin_allowed(std::string_view origin) const {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (origin.starts_with(scheme)) return host_allowed(origin.substr(scheme.size()));
  }
  return false;
}

}  // namespace hutch::http
