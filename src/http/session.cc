#include "http/session.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <utility>

#include "http/response_head.h"

namespace hutch::http {
namespace {

using boost::asio::awaitable;
using boost::asio::redirect_error;
using boost::asio::use_awaitable;
using boost::asio::ip::tcp;
using boost::system::error_code;

// One read. Small where heads are expected, so that an idle connection holds little memory.
constexpr std::size_t kHeadReadBytes = 4_KiB;
constexpr std::size_t kBodyReadBytes = 64_KiB;
// Bodies and answers up to this size are not counted: the number of connections bounds them.
constexpr std::uint64_t kSmallBodyBytes = 64_KiB;
// Below this a body that is still coming keeps no more room than it fills, when others need it.
constexpr std::uint64_t kSteadyBytesPerSecond = 1_MiB;
// How much of the next requests is read ahead while a handler runs.
constexpr std::size_t kReadAheadBytes = 64_KiB;
constexpr std::uint64_t kLingerBytes = 64_MiB;
constexpr std::chrono::milliseconds kLookAgain{200};

// Whether the peer has closed its side or reset the connection, whatever it may have sent before.
bool peer_has_left(int socket) {
  pollfd entry{.fd = socket, .events = POLLRDHUP, .revents = 0};
  if (::poll(&entry, 1, 0) <= 0) return false;
  return (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

bool is_request_id(const std::string& id) {
  return !id.empty() && id.size() <= 64 && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

Response try_again(std::string_view message) {
  Response response = error_response(503, message);
  response.fields.push_back({"Retry-After", "1"});
  return response;
}

bool method_has_body(const std::string& method) {
  return method == "POST" || method == "PUT" || method == "PATCH";
}

}  // namespace

// Room for a body is taken by what is announced, so that what has been let in is not refused half
// way. Whoever announces much and sends little has to give the difference up when others need it.
class BodyRoom {
 public:
  explicit BodyRoom(std::shared_ptr<SessionHost> host)
      : host_(std::move(host)), began_(host_->clock.mono()) {
    host_->rooms.insert(this);
  }
  BodyRoom(const BodyRoom&) = delete;
  BodyRoom& operator=(const BodyRoom&) = delete;
  ~BodyRoom() {
    host_->rooms.erase(this);
    host_->bodies_bytes -= held_;
  }

  // Takes room for `bytes` in all, of which `arrived` have come; false when all bodies together
  // would be too much.
  bool grow_to(std::uint64_t bytes, std::uint64_t arrived) {
    arrived_ = arrived;
    if (bytes <= kSmallBodyBytes || bytes <= held_) return true;
    const std::uint64_t more = bytes - held_;
    if (!fits(more)) {
      for (BodyRoom* other : host_->rooms) other->give_up_if_slow();
    }
    if (!fits(more)) return false;
    host_->bodies_bytes += more;
    held_ = bytes;
    return true;
  }

 private:
  bool fits(std::uint64_t more) const {
    return host_->bodies_bytes + more <= host_->options.limits.bodies_bytes_max;
  }

  void give_up_if_slow() {
    const auto seconds = (host_->clock.mono() - began_) / std::chrono::seconds(1);
    const bool in_time = arrived_ >= static_cast<std::uint64_t>(seconds) * kSteadyBytesPerSecond;
    if (in_time || held_ <= arrived_) return;
    host_->bodies_bytes -= held_ - arrived_;
    held_ = arrived_;
  }

  std::shared_ptr<SessionHost> host_;
  Nanos began_;
  std::uint64_t held_ = 0;
  std::uint64_t arrived_ = 0;
};

Session::Session(tcp::socket socket, std::shared_ptr<SessionHost> host, Purpose purpose)
    : socket_(std::move(socket)),
      host_(std::move(host)),
      purpose_(purpose),
      timer_(socket_.get_executor()),
      watch_timer_(socket_.get_executor()) {
  host_->sessions.insert(this);
}

Session::~Session() {
  release_answer();
  host_->sessions.erase(this);
}

void Session::start(std::function<void()> ended) {
  // The completion handler holds the session for as long as the coroutine runs.
  auto hold = [self = shared_from_this(),
               ended = std::move(ended)](const std::exception_ptr&) mutable {
    self.reset();
    if (ended) ended();
  };
  boost::asio::co_spawn(socket_.get_executor(), run(), std::move(hold));
}

void Session::drain() {
  if (waiting_for_next_ && requests_ > 0) close();
}

void Session::close() {
  if (std::exchange(closed_, true)) return;
  disarm_timer();
  watch_timer_.cancel();
  error_code ignored;
  socket_.close(ignored);
  if (const auto departure = departure_) departure->leave();
}

awaitable<void> Session::run() {
  error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  socket_.non_blocking(true, ignored);
  Next next = Next::keep;
  if (purpose_ == Purpose::refuse_for_number) {
    begin_exchange(nullptr);
    const Head none;
    Response response = try_again("too many connections - try again shortly");
    next = co_await answer(none, std::move(response), Next::linger);
  }
  while (next == Next::keep && !closed_) next = co_await serve_one();
  if (next == Next::linger && !closed_) co_await linger();
  close();
}

awaitable<Session::Next> Session::serve_one() {
  RequestReader reader(host_->options.limits.head);
  if (const Next next = co_await read_head(reader); next != Next::keep) co_return next;
  ++requests_;
  const Head& head = reader.head();
  begin_exchange(&head);

  const std::string path = head.target.substr(0, head.target.find('?'));
  const Router::Match match = host_->router.find(head.method, path);
  if (match.route != nullptr) route_ = match.route->path;
  if (auto refusal = refuse_by_head(head, match)) {
    // What follows the head, or may follow it, is the body of a request that nobody reads.
    const bool may_follow = head.has_body() || refusal->status == 411;
    const Next after = may_follow ? Next::linger : Next::keep;
    Response response = std::move(*refusal);
    co_return co_await answer(head, std::move(response), after);
  }
  if (auto limited = reader.limit_body(match.route->body_bytes_max); !limited) {
    Refusal refusal = std::move(limited.error());
    co_return co_await refuse(std::move(refusal));
  }
  // Given back before the answer: a client that reads slowly keeps nobody's body out.
  std::optional<BodyRoom> room(host_);
  if (const Next next = co_await read_body(reader, *room); next != Next::keep) co_return next;

  Request request{.id = id_, .method = head.method, .path = path, .fields = head.fields};
  if (path.size() < head.target.size()) request.query = head.target.substr(path.size() + 1);
  request.body = reader.take_body();
  body_bytes_in_ = request.body.size();
  Response response = co_await handle(*match.route, std::move(request));
  room.reset();
  co_return co_await answer(head, std::move(response), Next::keep);
}

void Session::begin_exchange(const Head* head) {
  const std::string* given = head == nullptr ? nullptr : head->field("X-Request-Id");
  id_ = given != nullptr && is_request_id(*given) ? *given : host_->random.hex(32);
  method_ = head == nullptr ? std::string() : head->method;
  route_.clear();
  body_bytes_in_ = 0;
  began_ = host_->clock.mono();
}

std::optional<Response> Session::refuse_by_head(const Head& head,
                                                const Router::Match& match) const {
  const std::string* host = head.field("Host");
  if (host == nullptr || !host_->host_rule.host_allowed(*host)) {
    return error_response(403, "host not allowed");
  }
  const std::string* origin = head.field("Origin");
  if (origin != nullptr && !host_->host_rule.origin_allowed(*origin)) {
    return error_response(403, "origin not allowed");
  }
  if (match.route == nullptr) {
    if (match.allow.empty()) return error_response(404, "not found");
    Response response = error_response(405, "method not allowed");
    response.fields.push_back({"Allow", match.allow});
    return response;
  }
  if (method_has_body(head.method) && !head.chunked && !head.has_length) {
    return error_response(411, "a request body needs a Content-Length");
  }
  if (head.expects_other) return error_response(417, "the only expectation met is 100-continue");
  return std::nullopt;
}

awaitable<Session::Next> Session::read_head(RequestReader& reader) {
  const Limits& limits = host_->options.limits;
  Nanos deadline = host_->clock.mono() + limits.head_time;
  bool begun = requests_ == 0;  // a new connection owes its first request at once
  for (;;) {
    auto complete = reader.read_head(input_);
    if (!complete) {
      begin_exchange(nullptr);
      Refusal refusal = std::move(complete.error());
      co_return co_await refuse(std::move(refusal));
    }
    if (*complete) co_return Next::keep;
    if (!begun && !input_.empty()) {
      begun = true;
      deadline = host_->clock.mono() + limits.head_time;
    }
    waiting_for_next_ = input_.empty();
    if (waiting_for_next_ && input_.capacity() > 2 * kHeadReadBytes) input_ = std::string();
    if (waiting_for_next_ && host_->draining && requests_ > 0) co_return Next::close;
    const Nanos wait = begun ? deadline - host_->clock.mono() : Nanos(limits.idle_time);
    const Input got = co_await read_some(kHeadReadBytes, wait);
    waiting_for_next_ = false;
    if (got == Input::data) continue;
    if (got == Input::closed || input_.empty()) co_return Next::close;
    begin_exchange(nullptr);
    Refusal refusal{408, "the request head did not arrive in time"};
    co_return co_await refuse(std::move(refusal));
  }
}

awaitable<Session::Next> Session::read_body(RequestReader& reader, BodyRoom& room) {
  const Head& head = reader.head();
  const Limits& limits = host_->options.limits;
  if (head.expects_continue && head.http_1_1 && head.has_body() && input_.empty()) {
    const std::array<std::string_view, 3> go_on{"HTTP/1.1 100 Continue\r\n\r\n"};
    if (!co_await write(go_on)) co_return Next::close;
  }
  const Nanos start = host_->clock.mono();
  for (;;) {
    auto complete = reader.read_body(input_);
    const std::uint64_t arrived = reader.body_bytes();
    if (!complete) {
      Refusal refusal = std::move(complete.error());
      co_return co_await refuse(std::move(refusal));
    }
    if (!room.grow_to(std::max(arrived, head.length), arrived)) {
      Response response = try_again("too many large requests at once - try again shortly");
      co_return co_await answer(head, std::move(response), Next::linger);
    }
    if (*complete) co_return Next::keep;
    const Nanos earned = std::chrono::seconds(arrived / limits.body_bytes_per_second);
    const Nanos deadline = start + limits.body_grace + earned;
    const Input got = co_await read_some(kBodyReadBytes, deadline - host_->clock.mono());
    if (got == Input::closed) co_return Next::close;
    if (got == Input::data) continue;
    Refusal refusal{408, "the request body did not arrive in time"};
    co_return co_await refuse(std::move(refusal));
  }
}

awaitable<Response> Session::handle(const Route& route, Request request) {
  auto departure = std::make_shared<Departure>();
  departure_ = departure;
  watch();
  Response response;
  try {
    auto pending = route.handler(std::move(request), departure);
    response = co_await std::move(pending);
  } catch (const std::exception&) {
    response = error_response(500, "internal error");
  }
  if (!response.stream) end_handler();
  co_return response;
}

void Session::end_handler() {
  departure_.reset();
  watch_timer_.cancel();
}

// While a handler runs nobody reads. Any event on the socket is then either bytes of a next request
// or the client's leaving. The wait may outlive the handler; it then finds nothing to do. A client
// that pipelines more than the kernel's buffers hold is seen leaving only by a reset.
void Session::watch() {
  if (watch_armed_ || !departure_ || closed_) return;
  watch_armed_ = true;
  socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](error_code) {
    self->watch_armed_ = false;
    self->look();
  });
}

void Session::look() {
  if (!departure_ || closed_) return;
  if (peer_has_left(socket_.native_handle())) return client_left();
  if (input_.size() >= kReadAheadBytes) {
    // With bytes left unread the socket always looks readable: ask again after a while instead.
    watch_timer_.expires_after(kLookAgain);
    watch_timer_.async_wait([self = shared_from_this()](error_code ec) {
      if (!ec) self->look();
    });
    return;
  }
  const std::size_t before = input_.size();
  input_.resize(before + kHeadReadBytes);
  error_code ec;
  const std::size_t size =
      socket_.read_some(boost::asio::buffer(input_.data() + before, kHeadReadBytes), ec);
  input_.resize(before + (ec ? 0 : size));
  if (ec && ec != boost::asio::error::would_block) return client_left();
  watch();
}

// What is being written to somebody who has left would be waited for in vain. The connection stays
// until the handler is through: a client that closed its own side alone then sees the end of ours,
// and knows by that that the work has ended.
void Session::client_left() {
  if (streaming_) {
    gone_ = true;
    error_code ignored;
    socket_.cancel(ignored);
  }
  // A copy: leaving may end the handler, and with it this session's part.
  if (const auto departure = departure_) departure->leave();
}

awaitable<Session::Next> Session::answer(const Head& head, Response response, Next next) {
  Served served{.id = id_, .method = method_, .route = route_, .body_bytes_in = body_bytes_in_};
  if (!closed_ && !response.abandoned) {
    ResponseHead fields{.request_id = id_, .wall_ms = host_->clock.wall_ms()};
    if (response.stream) fields.framing = head.http_1_1 ? Framing::chunked : Framing::until_close;
    const bool last = !head.keep_alive || host_->draining || fields.framing == Framing::until_close;
    if (next == Next::keep && last) next = Next::close;
    fields.connection = next != Next::keep ? ConnectionField::close
                        : head.http_1_1    ? ConnectionField::none
                                           : ConnectionField::keep_alive;
    std::string bytes = write_response_head(response, fields);
    if (head.method == "HEAD") response = {.status = response.status};
    served.status = response.status;
    served.body_bytes_out = response.body.size();
    hold_answer(response.body.size());
    const std::array<std::string_view, 3> parts{bytes, response.body};
    bool whole = co_await write(parts);
    // Its maker waits for somebody to take the stream, and would never hear that nobody does.
    if (!whole && response.stream && departure_) departure_->leave();
    if (whole && response.stream) {
      whole = co_await write_stream(response.stream, fields.framing, served.body_bytes_out);
    }
    if (!whole) next = Next::close;
    release_answer();
  } else {
    next = Next::close;
  }
  end_handler();
  served.duration = host_->clock.mono() - began_;
  if (host_->options.served) host_->options.served(served);
  co_return next;
}

// Nobody who reads is far behind, so room is made by whoever has been at it longest.
void Session::hold_answer(std::uint64_t bytes) {
  if (bytes <= kSmallBodyBytes || closed_) return release_answer();
  if (answer_bytes_ == 0) host_->answering.push_back(this);
  host_->answers_bytes += bytes;
  host_->answers_bytes -= std::exchange(answer_bytes_, bytes);
  while (host_->answers_bytes > host_->options.limits.answers_bytes_max &&
         host_->answering.size() > 1) {
    Session* slowest = host_->answering.front();
    slowest->release_answer();
    slowest->close();
  }
}

void Session::release_answer() {
  if (answer_bytes_ == 0) return;
  host_->answers_bytes -= std::exchange(answer_bytes_, 0);
  host_->answering.remove(this);
}

awaitable<Session::Next> Session::refuse(Refusal refusal) {
  const Head none;
  Response response = error_response(refusal.status, refusal.message);
  co_return co_await answer(none, std::move(response), Next::linger);
}

awaitable<bool> Session::write(std::array<std::string_view, 3> parts) {
  std::array<boost::asio::const_buffer, 3> rest{
      boost::asio::buffer(parts[0]), boost::asio::buffer(parts[1]), boost::asio::buffer(parts[2])};
  while (boost::asio::buffer_size(rest) > 0) {
    arm_timer(host_->options.limits.write_progress_time);
    error_code ec;
    std::size_t written =
        co_await socket_.async_write_some(rest, redirect_error(use_awaitable, ec));
    disarm_timer();
    if (ec) co_return false;
    for (auto& part : rest) {
      const std::size_t step = std::min(written, part.size());
      part += step;
      written -= step;
    }
  }
  co_return true;
}

awaitable<Session::Input> Session::read_some(std::size_t bytes_max, Nanos wait) {
  const std::size_t before = input_.size();
  input_.resize(before + bytes_max);
  arm_timer(wait);
  error_code ec;
  const boost::asio::mutable_buffer free(input_.data() + before, bytes_max);
  const std::size_t size =
      co_await socket_.async_read_some(free, redirect_error(use_awaitable, ec));
  disarm_timer();
  input_.resize(before + (ec ? 0 : size));
  if (!ec) co_return Input::data;
  co_return timed_out_ ? Input::timed_out : Input::closed;
}

awaitable<void> Session::linger() {
  error_code ec;
  socket_.shutdown(tcp::socket::shutdown_send, ec);
  const Nanos deadline = host_->clock.mono() + host_->options.limits.linger_time;
  std::uint64_t thrown_away = 0;
  while (!ec && thrown_away < kLingerBytes) {
    input_.clear();
    const Nanos wait = deadline - host_->clock.mono();
    if (wait <= Nanos(0)) break;
    if (co_await read_some(kBodyReadBytes, wait) != Input::data) break;
    thrown_away += input_.size();
  }
}

void Session::arm_timer(Nanos wait) {
  timed_out_ = false;
  const std::uint64_t turn = ++timer_turn_;
  timer_.expires_after(std::max(wait, Nanos(0)));
  timer_.async_wait([self = shared_from_this(), turn](error_code ec) {
    if (ec || turn != self->timer_turn_) return;
    self->timed_out_ = true;
    error_code ignored;
    self->socket_.cancel(ignored);
  });
}

void Session::disarm_timer() {
  ++timer_turn_;
  timer_.cancel();
}

}  // namespace hutch::http
