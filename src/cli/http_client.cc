#include "cli/http_client.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <cerrno>
#include <charconv>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/sys.h"
#include "base/units.h"

namespace hutch::cli {
namespace {

namespace beast = boost::beast;
using beast::http::error;

constexpr std::chrono::milliseconds kTick{100};
constexpr std::size_t kReadBytes = 64_KiB;
constexpr std::uint32_t kHeadBytesMax = 64_KiB;

// A body that is taken away as it grows. Takes no room by what a server announces.
struct Pieces {
  using value_type = std::string;

  class reader {
   public:
    template <bool kIsRequest, class Fields>
    reader(beast::http::header<kIsRequest, Fields>& /*head*/, value_type& body) : body_(body) {}

    void init(const boost::optional<std::uint64_t>& /*length*/, beast::error_code& ec) { ec = {}; }

    template <class Buffers>
    std::size_t put(const Buffers& buffers, beast::error_code& ec) {
      ec = {};
      std::size_t size = 0;
      for (auto at = boost::asio::buffer_sequence_begin(buffers);
           at != boost::asio::buffer_sequence_end(buffers); ++at) {
        const boost::asio::const_buffer part = *at;
        body_.append(static_cast<const char*>(part.data()), part.size());
        size += part.size();
      }
      return size;
    }

    void finish(beast::error_code& ec) { ec = {}; }

   private:
    value_type& body_;
  };
};

using Parser = beast::http::response_parser<Pieces>;

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Result<Addresses> look_up(const ServerAddress& address) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV;
  // A numeric address is meant even where no interface of its kind is up.
  in6_addr numeric{};
  if (::inet_pton(AF_INET, address.host.c_str(), &numeric) == 1 ||
      ::inet_pton(AF_INET6, address.host.c_str(), &numeric) == 1) {
    wanted.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  }
  addrinfo* list = nullptr;
  const std::string port = fmt::format("{}", address.port);
  const int failed = ::getaddrinfo(address.host.c_str(), port.c_str(), &wanted, &list);
  if (failed != 0) {
    return fail(ErrorCode::io,
                fmt::format("cannot find the host of {}: {}", address.url, ::gai_strerror(failed)));
  }
  return Addresses(list);
}

// What a wait for a socket ends with, apart from failures.
enum class Waited { ready, late };

// Waits until `events` (POLLIN, POLLOUT) may be done, until `deadline`, or until a signal.
Result<Waited> wait_for(int socket, short events, Nanos deadline, const Clock& clock,
                        const HttpClientOptions& options) {
  for (;;) {
    const Nanos left = deadline - clock.mono();
    if (left <= Nanos(0)) return Waited::late;
    auto pause = std::chrono::ceil<std::chrono::milliseconds>(left);
    if (options.tick) pause = std::min(pause, kTick);
    pause = std::min(pause, std::chrono::milliseconds(60'000));
    std::array<pollfd, 2> on{pollfd{socket, events, 0}, pollfd{options.stop_fd, POLLIN, 0}};
    const int ready = ::poll(on.data(), on.size(), static_cast<int>(pause.count()));
    if (ready > 0 && on[1].revents != 0) return fail(ErrorCode::cancelled, "interrupted");
    if (ready > 0 && on[0].revents != 0) return Waited::ready;
    if (options.tick) options.tick();
  }
}

Result<Fd> connect_to(const addrinfo& at, const ServerAddress& address, Nanos deadline,
                      const Clock& clock, const HttpClientOptions& options) {
  const std::string what = "cannot reach " + address.url;
  Fd socket(::socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return fail(sys::last_error(ErrorCode::io, Step::none, what));
  if (::connect(socket.get(), at.ai_addr, at.ai_addrlen) == 0) return socket;
  if (sys::last_errno() != EINPROGRESS) {
    return fail(sys::last_error(ErrorCode::io, Step::none, what));
  }
  if (TRY(wait_for(socket.get(), POLLOUT, deadline, clock, options)) == Waited::late) {
    return fail(Error{ErrorCode::io, Step::none, ETIMEDOUT, what});
  }
  int failed = 0;
  socklen_t size = sizeof failed;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &failed, &size);
  if (failed != 0) return fail(Error{ErrorCode::io, Step::none, failed, what});
  return socket;
}

std::string text_of(std::string_view method, std::string_view host, const HttpRequest& request) {
  std::string head = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nAccept: {}\r\n", method,
                                 request.target, host, request.accept);
  head += "User-Agent: hutch\r\nConnection: close\r\n";
  if (!request.bearer.empty()) head += fmt::format("Authorization: Bearer {}\r\n", request.bearer);
  if (!request.body.empty()) {
    head += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n",
                        request.body.size());
  }
  return head + "\r\n";
}

}  // namespace

Result<ServerAddress> parse_server_url(const std::string& text) {
  const auto bad = [&](std::string_view why) {
    return fail(ErrorCode::config,
                fmt::format("\"{}\" {}: write it as http://HOST:PORT", text, why));
  };
  constexpr std::string_view kScheme = "http://";
  if (text.starts_with("https://")) return bad("asks for TLS, which this command does not speak");
  if (!text.starts_with(kScheme)) return bad("is not the address of a server");
  std::string_view rest = std::string_view(text).substr(kScheme.size());
  if (rest.ends_with('/')) rest.remove_suffix(1);
  ServerAddress address;
  if (rest.starts_with('[')) {
    const std::size_t end = rest.find(']');
    if (end == std::string_view::npos) return bad("lacks the end of its address");
    address.host = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
  } else {
    address.host = rest.substr(0, rest.find(':'));
    rest.remove_prefix(address.host.size());
  }
  const bool is_clean = std::all_of(address.host.begin(), address.host.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_' || c == ':';
  });
  if (address.host.empty() || !is_clean) return bad("names no host");
  if (!rest.empty()) {
    if (rest.front() != ':') return bad("has more than a host and a port");
    rest.remove_prefix(1);
    const char* const end = rest.data() + rest.size();
    const auto parsed = std::from_chars(rest.data(), end, address.port);
    if (parsed.ec != std::errc{} || parsed.ptr != end || address.port == 0) {
      return bad("has no port from 1 to 65535");
    }
  }
  address.url = text.ends_with('/') ? text.substr(0, text.size() - 1) : text;
  return address;
}

class HttpClient::Exchange {
 public:
  Exchange(Fd socket, std::string name, const Clock& clock, HttpClientOptions options)
      : socket_(std::move(socket)),
        name_(std::move(name)),
        clock_(clock),
        options_(std::move(options)) {
    // Sends are looked after by wait_for(), so they may not wait themselves.
    ignore_error(sys::set_nonblocking(socket_.get()));
    parser_.header_limit(kHeadBytesMax);
    parser_.body_limit(boost::none);
    parser_.eager(true);
  }

  Result<HttpAnswer> begin(const HttpRequest& request) {
    const std::string_view scheme = "http://";
    const std::string host = name_.starts_with(scheme) ? name_.substr(scheme.size()) : "localhost";
    TRY(send(text_of(request.method, host, request)));
    TRY(send(request.body));
    while (!parser_.is_header_done()) TRY(read_more());
    const auto& head = parser_.get();
    HttpAnswer answer{.status = static_cast<int>(head.result_int())};
    answer.content_type = head[beast::http::field::content_type];
    answer.request_id = head["X-Request-Id"];
    return answer;
  }

  Result<bool> read_body(std::string& into) {
    std::string& body = parser_.get().body();
    while (body.empty() && !parser_.is_done()) TRY(read_more());
    if (body.empty()) return false;
    into += body;
    body.clear();
    return true;
  }

  bool leave(std::chrono::milliseconds patience) {
    ::shutdown(socket_.get(), SHUT_WR);
    const Nanos deadline = clock_.mono() + patience;
    std::array<std::byte, 4096> thrown_away{};
    HttpClientOptions quiet{.stop_fd = options_.stop_fd};
    for (;;) {
      const auto waited = wait_for(socket_.get(), POLLIN, deadline, clock_, quiet);
      if (!waited || *waited == Waited::late) return false;
      const auto got = sys::read_some(socket_.get(), thrown_away);
      if (!got || (got->size == 0 && !got->would_block)) return true;
    }
  }

 private:
  Nanos deadline() const { return clock_.mono() + options_.silence; }

  tl::unexpected<Error> silent() const {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options_.silence);
    return fail(ErrorCode::io, fmt::format("{} was silent for {} s", name_, seconds.count()));
  }

  // As far as the server wants it: one that has answered already gets no more.
  Status send(std::string_view bytes) {
    while (!bytes.empty() && !answered_early_) {
      const short both = POLLIN | POLLOUT;
      if (TRY(wait_for(socket_.get(), both, deadline(), clock_, options_)) == Waited::late) {
        return silent();
      }
      pollfd entry{socket_.get(), POLLIN, 0};
      if (::poll(&entry, 1, 0) > 0) {
        answered_early_ = true;
        break;
      }
      const auto put = sys::send_some(socket_.get(), std::as_bytes(std::span(bytes)));
      // The answer, if there is one, says more than the failure of this call.
      if (!put) answered_early_ = true;
      if (put) bytes.remove_prefix(*put);
    }
    return {};
  }

  Status read_more() {
    if (TRY(wait_for(socket_.get(), POLLIN, deadline(), clock_, options_)) == Waited::late) {
      return silent();
    }
    const std::size_t before = input_.size();
    input_.resize(before + kReadBytes);
    const std::span<char> room(input_.data() + before, kReadBytes);
    const auto got = sys::read_some(socket_.get(), std::as_writable_bytes(room));
    input_.resize(before + (got ? got->size : 0));
    if (got && got->would_block) return {};
    beast::error_code ec;
    if (!got || got->size == 0) {
      // A body without a length ends with the connection; an answer that has not begun does not.
      if (parser_.got_some()) parser_.put_eof(ec);
      if (!ec && parser_.is_done()) return {};
      return fail(Error{ErrorCode::io, Step::none, got ? 0 : got.error().sys_errno,
                        name_ + " closed the connection before the end of its answer"});
    }
    const std::size_t used = parser_.put(boost::asio::buffer(input_), ec);
    input_.erase(0, used);
    if (ec && ec != error::need_more) {
      return fail(ErrorCode::io,
                  fmt::format("what {} answers is not HTTP: {}", name_, ec.message()));
    }
    return {};
  }

  Fd socket_;
  std::string name_;
  const Clock& clock_;
  HttpClientOptions options_;
  Parser parser_;
  std::string input_;  // read, and not yet understood
  bool answered_early_ = false;
};

Result<HttpClient> HttpClient::connect(const ServerAddress& address, const Clock& clock,
                                       HttpClientOptions options) {
  const Addresses list = TRY(look_up(address));
  const Nanos deadline = clock.mono() + options.connect_time;
  std::optional<Error> first;
  for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
    Result<Fd> socket = connect_to(*at, address, deadline, clock, options);
    if (socket) {
      const int on = 1;
      ::setsockopt(socket->get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      return HttpClient(std::move(*socket), address.url, clock, std::move(options));
    }
    if (!first || socket.error().code == ErrorCode::cancelled) first = socket.error();
    if (first->code == ErrorCode::cancelled) break;
  }
  return fail(first.value_or(Error{ErrorCode::io, Step::none, 0, "cannot reach " + address.url}));
}

HttpClient::HttpClient(Fd socket, std::string name, const Clock& clock, HttpClientOptions options)
    : exchange_(std::make_unique<Exchange>(std::move(socket), std::move(name), clock,
                                           std::move(options))) {}
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient& HttpClient::operator=(HttpClient&&) noexcept = default;
HttpClient::~HttpClient() = default;

Result<HttpAnswer> HttpClient::begin(const HttpRequest& request) {
  return exchange_->begin(request);
}

Result<bool> HttpClient::read_body(std::string& into) { return exchange_->read_body(into); }

Result<HttpAnswer> HttpClient::exchange(const HttpRequest& request, std::size_t bytes_max) {
  HttpAnswer answer = TRY(begin(request));
  while (TRY(read_body(answer.body))) {
    if (answer.body.size() > bytes_max) {
      return fail(ErrorCode::too_large,
                  fmt::format("the answer is larger than {} bytes", bytes_max));
    }
  }
  return answer;
}

bool HttpClient::leave(std::chrono::milliseconds patience) { return exchange_->leave(patience); }

}  // namespace hutch::cli
