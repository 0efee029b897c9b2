#include "http/router.h"

namespace hutch::http {

Router::Match Router::find(std::string_view method, std::string_view path) const {
  Match match;
  for (const Route& route : routes_) {
    if (route.path != path) continue;
    if (!match.allow.empty()) match.allow += ", ";
    match.allow += route.method;
    if (route.method == method) match.route = &route;
  }
  return match;
}

}  // namespace hutch::http
