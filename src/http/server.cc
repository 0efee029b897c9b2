#include "http/server.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "http/session.h"

namespace hutch::http {
namespace {

using boost::asio::awaitable;
using boost::asio::ip::tcp;
using boost::system::error_code;

// Connections beyond the limit that may be told so at once; later ones are closed without a word.
constexpr std::size_t kRefusingMax = 64;
constexpr std::chrono::milliseconds kRetryFirst{20};
constexpr std::chrono::milliseconds kRetryMost{1000};

Error listen_error(const ListenAddress& address, const error_code& ec) {
  const std::string where =
      address.host + " port " + std::to_string(static_cast<unsigned>(address.port));
  ErrorCode code = ErrorCode::io;
  if (ec == boost::asio::error::address_in_use) code = ErrorCode::address_in_use;
  if (ec == boost::asio::error::access_denied) code = ErrorCode::not_permitted;
  if (ec == boost::system::errc::address_not_available) code = ErrorCode::config;
  return {code, Step::none, ec.value(), "cannot listen on " + where};
}

}  // namespace

class Server::Listener : public std::enable_shared_from_this<Listener> {
 public:
  Listener(boost::asio::io_context& io, const Clock& clock, Random& random, ServerOptions options,
           Router router)
      : acceptor_(io),
        retry_(io),
        host_(std::make_shared<SessionHost>(
            SessionHost{.clock = clock,
                        .random = random,
                        .options = options,
                        .router = std::move(router),
                        .host_rule = HostRule(options.address.host, options.hosts)})) {}

  Status listen() {
    const ListenAddress& address = host_->options.address;
    error_code ec;
    const auto ip = boost::asio::ip::make_address(address.host, ec);
    if (ec) return fail(ErrorCode::config, "'" + address.host + "' is not a numeric address");
    const tcp::endpoint endpoint(ip, address.port);
    acceptor_.open(endpoint.protocol(), ec);
    // A port whose old connections are still being forgotten by the kernel can be taken again.
    if (!ec) acceptor_.set_option(tcp::acceptor::reuse_address(true), ec);
    if (!ec) acceptor_.bind(endpoint, ec);
    if (!ec) acceptor_.listen(boost::asio::socket_base::max_listen_connections, ec);
    if (!ec) bound_ = acceptor_.local_endpoint(ec);
    if (ec) {
      Error error = listen_error(address, ec);
      acceptor_.close(ec);
      return fail(std::move(error));
    }
    auto hold = [self = shared_from_this()](const std::exception_ptr&) {};
    boost::asio::co_spawn(acceptor_.get_executor(), accept(), std::move(hold));
    return {};
  }

  Status adopt(Fd connection, std::function<void()> ended) {
    tcp::socket socket(acceptor_.get_executor());
    error_code ec;
    // The family matters to nothing that a session does with its socket.
    socket.assign(tcp::v4(), connection.get(), ec);
    if (ec) return fail({ErrorCode::io, Step::none, ec.value(), "cannot take a connection over"});
    static_cast<void>(connection.release());
    std::make_shared<Session>(std::move(socket), host_, Session::Purpose::serve)
        ->start(std::move(ended));
    return {};
  }

  void set_hosts(const std::vector<std::string>& hosts) {
    host_->options.hosts = hosts;
    host_->host_rule = HostRule(host_->options.address.host, hosts);
  }

  void stop_accepting() {
    error_code ignored;
    acceptor_.close(ignored);
    retry_.cancel();
  }

  void drain() {
    host_->draining = true;
    for (const auto& session : open_sessions()) session->drain();
  }

  void close() {
    stop_accepting();
    for (const auto& session : open_sessions()) session->close();
  }

  const tcp::endpoint& bound() const { return bound_; }
  std::size_t connections() const { return host_->sessions.size(); }

 private:
  // Held, since sessions may end and leave the set while the caller walks.
  std::vector<std::shared_ptr<Session>> open_sessions() const {
    std::vector<std::shared_ptr<Session>> held;
    for (Session* session : host_->sessions) {
      if (auto alive = session->weak_from_this().lock()) held.push_back(std::move(alive));
    }
    return held;
  }

  awaitable<void> accept() {
    std::chrono::milliseconds retry_after = kRetryFirst;
    while (acceptor_.is_open()) {
      error_code ec;
      tcp::socket socket = co_await acceptor_.async_accept(
          boost::asio::redirect_error(boost::asio::use_awaitable, ec));
      if (!acceptor_.is_open()) co_return;
      if (ec) {
        // No descriptor or memory is left: the connection stays in the kernel's queue, and asking
        // again at once would spin.
        retry_.expires_after(retry_after);
        retry_after = std::min(retry_after * 2, kRetryMost);
        co_await retry_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ec));
        continue;
      }
      retry_after = kRetryFirst;
      start_session(std::move(socket));
    }
  }

  void start_session(tcp::socket socket) {
    const std::size_t most = host_->options.limits.connections_max;
    if (connections() >= most + kRefusingMax) return;
    const auto purpose =
        connections() < most ? Session::Purpose::serve : Session::Purpose::refuse_for_number;
    std::make_shared<Session>(std::move(socket), host_, purpose)->start({});
  }

  tcp::acceptor acceptor_;
  boost::asio::steady_timer retry_;
  std::shared_ptr<SessionHost> host_;
  tcp::endpoint bound_;
};

Server::Server(boost::asio::io_context& io, const Clock& clock, Random& random,
               ServerOptions options, Router router)
    : listener_(
          std::make_shared<Listener>(io, clock, random, std::move(options), std::move(router))) {}

Server::~Server() { close(); }

Status Server::listen() { return listener_->listen(); }

Status Server::adopt(Fd socket, std::function<void()> ended) {
  return listener_->adopt(std::move(socket), std::move(ended));
}

std::string Server::url() const {
  const auto& bound = listener_->bound();
  const std::string host = bound.address().to_string();
  const std::string port = std::to_string(static_cast<unsigned>(bound.port()));
  return "http://" + (bound.address().is_v6() ? "[" + host + "]" : host) + ":" + port;
}

std::uint16_t Server::port() const { return listener_->bound().port(); }
void Server::set_hosts(const std::vector<std::string>& hosts) { listener_->set_hosts(hosts); }
void Server::drain() { listener_->drain(); }
void Server::stop_accepting() { listener_->stop_accepting(); }
void Server::close() { listener_->close(); }

std::uint32_t Server::connections() const {
  return static_cast<std::uint32_t>(listener_->connections());
}

}  // namespace hutch::http
