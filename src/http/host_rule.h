// Which Host and Origin fields a listener accepts. A web page in somebody's browser can reach a
// loopback listener under a name of its own; it cannot make the browser send another Host or
// Origin.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hutch::http {

class HostRule {
 public:
  // Always allowed, with any port: `bound_address` (unless it stands for every address),
  // localhost, 127.0.0.1 and [::1]. `further` holds names, with any port, or "name:port".
  HostRule(std::string_view bound_address, const std::vector<std::string>& further);

  bool host_allowed(std::string_view host) const;
  // "http://host" or "https://host" with an optional port. "null" is not allowed.
  bool origin_allowed(std::string_view origin) const;

 private:
  std::vector<std::string> names_;  // lower case, with ":port" where only that port is meant
};

}  // namespace hutch::http
