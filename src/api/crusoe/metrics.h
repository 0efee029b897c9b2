// What GET /metrics shows, in Prometheus' text format: the pool and the runs as the service counts
// them, and the requests of the listeners that observe() is told about.
#pragma once

#include <memory>
#include <string>

#include "http/server.h"
#include "service/shots.h"

namespace prometheus {
class Registry;
}

namespace hutch::api::crusoe {

class Metrics {
 public:
  // `shots` must outlive this object.
  explicit Metrics(const service::Shots& shots);
  ~Metrics();

  // For ServerOptions::served.
  void observe(const http::Served& served);
  // One run that came back with an outcome.
  void observe(const service::ShotAnswer& answer);

  // Everything as text.
  std::string text() const;

  // For whoever has more to measure; shown with the rest.
  prometheus::Registry& registry();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hutch::api::crusoe
