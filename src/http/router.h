// Which handler answers which method and path. A table that is fixed at start; paths are compared
// byte for byte, so that an encoded dot or slash never reaches another route.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "http/departure.h"
#include "http/message.h"

namespace hutch::http {

// Runs on the server's thread. An exception that leaves it becomes a 500; the connection goes on.
using Handler =
    std::function<boost::asio::awaitable<Response>(Request, std::shared_ptr<Departure>)>;

struct Route {
  std::string method;
  std::string path;
  std::uint64_t body_bytes_max = 64_KiB;  // a larger body is answered with 413, mostly unread
  Handler handler;
};

class Router {
 public:
  // A router without routes answers 404 to everything.
  explicit Router(std::vector<Route> routes) : routes_(std::move(routes)) {}

  struct Match {
    const Route* route = nullptr;  // null: no route has both this path and this method
    std::string allow;             // the methods that the path has, as Allow lists them; may be ""
  };
  Match find(std::string_view method, std::string_view path) const;

 private:
  std::vector<Route> routes_;
};

}  // namespace hutch::http
