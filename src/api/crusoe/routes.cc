#include "api/crusoe/routes.h"

#include <boost/asio/this_coro.hpp>
#include <memory>
#include <utility>

#include "api/crusoe/convert.h"
#include "api/crusoe/errors.h"
#include "api/crusoe/execute_stream.h"
#include "api/crusoe/wire.h"
#include "http/accept.h"

extern "C" const char hutch_openapi_start[];
extern "C" const char hutch_openapi_end[];

namespace hutch::api::crusoe {
namespace {

using boost::asio::awaitable;
using http::Departure;
using http::Request;
using http::Response;

constexpr std::string_view kEventStream = "text/event-stream";

awaitable<Response> execute_stream(std::shared_ptr<const Door> door, model::ShotSpec spec,
                                   std::shared_ptr<Departure> departure) {
  const ExecuteStream::Options options{.timeout_s = spec.timeout_s,
                                       .still_running = door->still_running};
  auto executor = co_await boost::asio::this_coro::executor;
  const auto stream =
      std::make_shared<ExecuteStream>(std::move(executor), door->shots, door->metrics, options);
  std::function<void()> cancel = [stream] { stream->cancel(); };
  departure->on_leave(std::move(cancel));
  auto pending = stream->begin(std::move(spec));
  const auto error = co_await std::move(pending);
  if (error) {
    departure->on_leave(nullptr);
    co_return error_answer(*error);
  }
  Response response{.content_type = std::string(kEventStream)};
  response.fields.push_back({"Cache-Control", "no-store"});
  response.stream = [stream](http::BodyWriter& writer) { return stream->send(writer); };
  co_return response;
}

awaitable<Response> execute(std::shared_ptr<const Door> door, Request request,
                            std::shared_ptr<Departure> departure) {
  auto decoded = decode_execute(request.body, door->image);
  const bool streamed = http::prefers(request.fields, kEventStream, "application/json");
  // Given back now: a body is large, and a run may wait for half a minute without needing it.
  request.body = std::string();
  if (!decoded) co_return error_answer(decoded.error());
  const Report report = decoded->report ? Report::full : Report::informative;
  const std::uint32_t timeout_s = decoded->timeout_s;
  auto spec = to_shot_spec(std::move(*decoded));
  if (!spec) co_return error_answer(spec.error());

  if (streamed) {
    auto answer = execute_stream(std::move(door), std::move(*spec), std::move(departure));
    co_return co_await std::move(answer);
  }
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
