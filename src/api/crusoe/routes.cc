#include "api/crusoe/routes.h"

#include <memory>
#include <utility>

#include "api/crusoe/convert.h"
#include "api/crusoe/errors.h"
#include "api/crusoe/wire.h"

extern "C" const char hutch_openapi_start[];
extern "C" const char hutch_openapi_end[];

namespace hutch::api::crusoe {
namespace {

using boost::asio::awaitable;
using http::Departure;
using http::Request;
using http::Response;

awaitable<Response> execute(std::shared_ptr<const Door> door, Request request,
                            std::shared_ptr<Departure> departure) {
  auto decoded = decode_execute(request.body);
  // Given back now: a body is large, and a run may wait for half a minute without needing it.
  request.body = std::string();
  if (!decoded) co_return error_answer(decoded.error());
  const Report report = decoded->report ? Report::full : Report::informative;
  const std::uint32_t timeout_s = decoded->timeout_s;
  auto spec = to_shot_spec(std::move(*decoded));
  if (!spec) co_return error_answer(spec.error());

  auto cancellation = std::make_shared<service::Cancellation>();
  std::function<void()> cancel = [cancellation] { cancellation->cancel(); };
  departure->on_leave(std::move(cancel));
  auto pending = door->shots.run(std::move(*spec), cancellation);
  auto answer = co_await std::move(pending);
  departure->on_leave(nullptr);
  if (!answer) co_return error_answer(answer.error());
  door->metrics.observe(*answer);
  Response response;
  response.body = encode(to_answer(std::move(*answer), timeout_s, report));
  co_return response;
}

Response pool(const Door& door) { return {.body = encode(to_answer(door.shots.pool_numbers()))}; }

Response health(const Door& door) {
  const bool draining = door.draining && door.draining();
  return {.body = draining ? R"({"status":"draining"})" : R"({"status":"ok"})"};
}

Response readiness(const Door& door) {
  if (door.shots.ready()) return {.body = R"({"status":"ready"})"};
  return http::error_response(503, "not ready");
}

Response metrics(const Door& door) {
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = door.metrics.text()};
}

Response openapi(const Door& /*door*/) {
  const auto size = static_cast<std::size_t>(hutch_openapi_end - hutch_openapi_start);
  return {.content_type = "application/yaml", .body = std::string(hutch_openapi_start, size)};
}

using Page = Response (*)(const Door&);

awaitable<Response> show(std::shared_ptr<const Door> door, Page page) { co_return page(*door); }

}  // namespace

http::Router internal_routes(const Door& the_door) {
  const auto door = std::make_shared<const Door>(the_door);
  const auto get = [door](const char* path, Page page) {
    return http::Route{.method = "GET", .path = path, .handler = [door, page](auto&&...) {
                         return show(door, page);
                       }};
  };
  return http::Router({
      {.method = "POST",
       .path = "/v1/execute",
       .body_bytes_max = door->body_bytes_max,
       .handler =
           [door](Request request, std::shared_ptr<Departure> departure) {
             return execute(door, std::move(request), std::move(departure));
           }},
      get("/v1/pool", pool),
      get("/healthz", health),
      get("/readyz", readiness),
      get("/metrics", metrics),
      get("/openapi.yaml", openapi),
  });
}

http::Router public_routes() { return http::Router({}); }

}  // namespace hutch::api::crusoe
