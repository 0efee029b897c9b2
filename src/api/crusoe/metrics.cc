#include "api/crusoe/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <utility>
#include <vector>

namespace hutch::api::crusoe {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// 1 ms to a minute.
const prometheus::Histogram::BucketBoundaries kSeconds{
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60};

constexpr std::array kCauses{model::Cause::exited, model::Cause::signaled,  model::Cause::timeout,
                             model::Cause::memory, model::Cause::processes, model::Cause::disk};

MetricFamily family(std::string name, std::string help, MetricType type) {
  MetricFamily family;
  family.name = std::move(name);
  family.help = std::move(help);
  family.type = type;
  return family;
}

void add(MetricFamily& family, double value, std::vector<ClientMetric::Label> labels = {}) {
  ClientMetric metric;
  metric.label = std::move(labels);
  (family.type == MetricType::Gauge ? metric.gauge.value : metric.counter.value) = value;
  family.metric.push_back(std::move(metric));
}

MetricFamily single(std::string name, std::string help, MetricType type, double value) {
  MetricFamily one = family(std::move(name), std::move(help), type);
  add(one, value);
  return one;
}

std::vector<MetricFamily> pool_families(const service::Shots& shots) {
  const service::PoolNumbers pool = shots.pool_numbers();
  const service::ShotStats stats = shots.stats();
  constexpr auto kGauge = MetricType::Gauge;
  constexpr auto kCounter = MetricType::Counter;
  std::vector<MetricFamily> all;
  all.push_back(
      single("hutch_pool_warm", "Sandboxes ready and handed to nobody.", kGauge, pool.warm));
  all.push_back(single("hutch_pool_target", "Warm sandboxes the pool keeps.", kGauge, pool.target));
  all.push_back(single("hutch_pool_creating", "Sandboxes being made.", kGauge, stats.creating));
  all.push_back(single("hutch_pool_waiting", "Requests in the line.", kGauge, stats.waiting));
  all.push_back(single("hutch_runs_in_flight", "Runs handed out and not yet answered.", kGauge,
                       pool.in_flight));
  all.push_back(single("hutch_sandboxes_live", "Sandboxes that hold a slot, in any state.", kGauge,
                       stats.live));
  all.push_back(single("hutch_sandboxes_quarantined", "Sandboxes that would not go away.", kGauge,
                       stats.quarantined));
  all.push_back(single("hutch_sandboxes_created_total", "Sandboxes that became ready.", kCounter,
                       static_cast<double>(pool.created_total)));
  all.push_back(single("hutch_sandbox_create_failures_total", "Sandboxes that could not be made.",
                       kCounter, static_cast<double>(stats.create_failures_total)));
  all.push_back(single("hutch_warm_sandboxes_lost_total", "Warm sandboxes that died unused.",
                       kCounter, static_cast<double>(stats.warm_lost_total)));
  return all;
}

std::vector<MetricFamily> run_families(const service::Shots& shots) {
  const service::ShotStats stats = shots.stats();
  MetricFamily ended =
      family("hutch_runs_total", "Runs by how their program ended.", MetricType::Counter);
  for (const model::Cause cause : kCauses) {
    const auto found = stats.ended.find(cause);
    const double value = found == stats.ended.end() ? 0 : static_cast<double>(found->second);
    add(ended, value, {{"cause", std::string(model::cause_name(cause))}});
  }
  MetricFamily failed = family("hutch_run_errors_total", "Runs that came to no outcome, by why.",
                               MetricType::Counter);
  for (const auto& [code, count] : stats.failed) {
    add(failed, static_cast<double>(count), {{"code", std::string(error_code_name(code))}});
  }
  MetricFamily setup = family("hutch_setup_step_seconds",
                              "Steps of making sandboxes that became ready.", MetricType::Summary);
  for (const auto& [step, total] : stats.setup) {
    ClientMetric metric;
    metric.label = {{"step", std::string(step_name(step))}};
    metric.summary.sample_count = total.count;
    metric.summary.sample_sum = static_cast<double>(total.micros) / 1e6;
    setup.metric.push_back(std::move(metric));
  }
  std::vector<MetricFamily> all{std::move(ended)};
  for (MetricFamily* more : {&failed, &setup}) {
    if (!more->metric.empty()) all.push_back(std::move(*more));
  }
  return all;
}

}  // namespace

struct Metrics::Impl {
  explicit Impl(const service::Shots& the_shots)
      : shots(the_shots),
        requests(prometheus::BuildCounter()
                     .Name("hutch_http_requests_total")
                     .Help("Answered requests by route and status; status 0: the client had left.")
                     .Register(registry)),
        duration(prometheus::BuildHistogram()
                     .Name("hutch_run_duration_seconds")
                     .Help("From the code's handing over to its end.")
                     .Register(registry)
                     .Add({}, kSeconds)),
        wait(prometheus::BuildHistogram()
                 .Name("hutch_run_wait_seconds")
                 .Help("From a run's arrival to its sandbox.")
                 .Register(registry)
                 .Add({}, kSeconds)) {}

  const service::Shots& shots;
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& requests;
  prometheus::Histogram& duration;
  prometheus::Histogram& wait;
};

Metrics::Metrics(const service::Shots& shots) : impl_(std::make_unique<Impl>(shots)) {}
Metrics::~Metrics() = default;

void Metrics::observe(const http::Served& served) {
  // Routes come from the table and statuses are few, so the number of series stays small.
  const std::string route(served.route.empty() ? "none" : served.route);
  impl_->requests.Add({{"route", route}, {"status", std::to_string(served.status)}}).Increment();
}

void Metrics::observe(const service::ShotAnswer& answer) {
  impl_->duration.Observe(static_cast<double>(answer.result.duration_ms) / 1e3);
  impl_->wait.Observe(static_cast<double>(answer.waited_us) / 1e6);
}

std::string Metrics::text() const {
  std::vector<MetricFamily> all = pool_families(impl_->shots);
  for (auto& more : {run_families(impl_->shots), impl_->registry.Collect()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return prometheus::TextSerializer().Serialize(all);
}

prometheus::Registry& Metrics::registry() { return impl_->registry; }

}  // namespace hutch::api::crusoe
