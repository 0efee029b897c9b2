// The routes of the two listeners.
//
// How main uses it:
//
//   service::Shots shots(...);
//   api::crusoe::Metrics metrics(shots);
//   http::ServerOptions options{.address = ..., .hosts = ...};
//   options.served = [&](const http::Served& served) { metrics.observe(served); /* log it */ };
//   http::Server internal(io, clock, random, options,
//                         api::crusoe::internal_routes({.shots = shots,
//                                                       .metrics = metrics,
//                                                       .body_bytes_max = ...,
//                                                       .draining = [&] { return ...; }}));
//   http::Server open(io, clock, random, ..., api::crusoe::public_routes());
//
// Requests need no token: whoever reaches the internal listener may run code.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "api/crusoe/metrics.h"
#include "api/crusoe/wire.h"
#include "base/units.h"
#include "http/router.h"
#include "service/shots.h"

namespace hutch::api::crusoe {

struct Door {
  service::Shots& shots;
  Metrics& metrics;
  std::uint64_t body_bytes_max = 32_MiB;  // of POST /v1/execute; 413 beyond
  ServedImage image;                      // what a request may name
  std::function<bool()> draining;         // for /healthz; empty: never
  // A streamed run says at least this often that it goes on.
  std::chrono::milliseconds still_running{15'000};
};

// The references in `door` must outlive the server that has these routes.
http::Router internal_routes(const Door& door);

// The public listener answers 404 to everything.
http::Router public_routes();

}  // namespace hutch::api::crusoe
