// One HTTP/1.1 listener: accepts connections, reads requests strictly, gives them to the routes and
// writes the answers. Knows nothing about sandboxes. Everything runs on the one thread of the
// io_context; no call here blocks.
//
// How main uses it, once for each listener:
//
//   const auto address = TRY(http::parse_listen_address("127.0.0.1:8700"));
//   http::Server internal(io, clock, random, {.address = address, .served = ...},
//   std::move(router)); TRY(internal.listen());          // address_in_use when the port is taken
//   ... io.run() ...; internal.url() is "http://127.0.0.1:8700"
//   internal.drain();                // SIGTERM: open requests finish, later ones are still
//   answered internal.close();                // when the service has drained, or at the second
//   SIGTERM
//
// The io_context, clock and random must outlive the last run of the io_context, since connections
// end inside it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/random.h"
#include "base/result.h"
#include "http/head_scanner.h"
#include "http/router.h"

namespace hutch::http {

struct ListenAddress {
  std::string host = "127.0.0.1";  // a numeric address, without brackets
  std::uint16_t port = 0;          // 0: the kernel chooses
};

struct Limits {
  HeadLimits head;
  // From a connection's start, or from the first byte of a later request, to the end of the head:
  // 408, or a silent close when nothing has come.
  std::chrono::milliseconds head_time{10'000};
  // Between two requests on one connection; then it is closed.
  std::chrono::milliseconds idle_time{60'000};
  // A body must arrive at this many bytes a second on average, after a start of body_grace: 408.
  std::uint64_t body_bytes_per_second = 4_KiB;
  std::chrono::milliseconds body_grace{10'000};
  // A client must take some byte of its answer at least this often, while there is one to take.
  // There is no limit in all.
  std::chrono::milliseconds write_progress_time{30'000};
  // How long a connection that is closed after a refusal goes on throwing away what still comes,
  // so that the client reads the answer instead of a reset.
  std::chrono::milliseconds linger_time{5'000};
  std::uint32_t connections_max = 2048;  // 503 beyond
  // Bodies above 64 KiB that are in memory or on the way, in all; 503 beyond. One that comes slower
  // than 1 MiB a second counts by what has come when another needs the room.
  std::uint64_t bodies_bytes_max = 256_MiB;
  // Answers, or what is held of one that is still being made, above 64 KiB each that clients have
  // not read yet, in all; beyond, the connection that has been at it longest is closed.
  std::uint64_t answers_bytes_max = 256_MiB;
};

// One answered request, for the log and the metrics. The views live as long as the call.
struct Served {
  std::string_view id;
  std::string_view method;  // as the client wrote it: any token; empty when the head did not parse
  std::string_view route;   // path of the route in the table; empty when none was found
  int status = 0;           // 0: the client left before there was an answer
  std::uint64_t body_bytes_in = 0;
  std::uint64_t body_bytes_out = 0;
  Nanos duration{0};  // from the complete head to the last byte of the answer
};

struct ServerOptions {
  ListenAddress address;
  std::vector<std::string> hosts;  // further names for Host and Origin, see HostRule
  Limits limits;
  std::function<void(const Served&)> served;  // may be empty
};

class Server {
 public:
  Server(boost::asio::io_context& io, const Clock& clock, Random& random, ServerOptions options,
         Router router);
  ~Server();  // closes
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Binds and starts to accept. Fails as address_in_use, not_permitted (a port below 1024), config
  // (an address that this host does not have), io.
  Status listen();
  // Serves a connected stream socket of any family as if it had been accepted. `ended` is called
  // inside the loop once, when that connection has ended. Error: io.
  Status adopt(Fd socket, std::function<void()> ended);
  // "http://127.0.0.1:8700", with the port that was really bound. After listen().
  std::string url() const;
  std::uint16_t port() const;

  // Replaces ServerOptions::hosts, for requests whose head comes from now on.
  void set_hosts(const std::vector<std::string>& hosts);

  // Closes connections that wait for their next request, and every other one after its answer. New
  // connections are still accepted, so that their requests get the 503 of a service that drains.
  void drain();
  // No new connections from now on.
  void stop_accepting();
  // Stops accepting and closes every connection; handlers that run learn of it as a departure.
  void close();

  std::uint32_t connections() const;

 private:
  class Listener;
  std::shared_ptr<Listener> listener_;
};

}  // namespace hutch::http
