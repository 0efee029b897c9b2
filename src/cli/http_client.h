// One HTTP/1.1 connection to a server of ours, from a command: it sends one request and takes the
// answer whole or piece by piece. Waits by poll(), so that a signal, a deadline and a line of
// progress get their turn; has no thread. Knows nothing of what the bodies mean.
//
//   auto client = TRY(HttpClient::connect(TRY(parse_server_url(url)), clock, {.stop_fd = ...}));
//   const HttpAnswer answer = TRY(client.exchange({.target = "/v1/pool"}, 1_MiB));
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace hutch::cli {

struct ServerAddress {
  std::string host;  // a name or a numeric address, without brackets
  std::uint16_t port = 80;
  std::string url;  // for messages: "http://127.0.0.1:8700", without a slash at the end
};

// "http://HOST[:PORT]", with or without a slash at the end. Error: config, a sentence that starts
// with the text.
Result<ServerAddress> parse_server_url(const std::string& text);

struct HttpClientOptions {
  int stop_fd = -1;                              // readable: what waits ends as `cancelled`
  std::chrono::milliseconds connect_time{5000};  // for all addresses of a name together
  // Whatever is awaited comes within this time, byte for byte, or the exchange ends as `io`.
  std::chrono::milliseconds silence{60'000};
  std::function<void()> tick;  // called every 100 ms or so of waiting; may be empty
};

struct HttpRequest {
  std::string method = "GET";
  std::string target = "/";
  std::string accept = "application/json";
  std::string body;    // sent as application/json, unless empty
  std::string bearer;  // a key for Authorization; empty for none
};

struct HttpAnswer {
  int status = 0;
  std::string content_type;  // as sent, with its parameters
  std::string request_id;
  std::string body;
};

class HttpClient {
 public:
  // Error: io, or cancelled. Error::sys_errno is ECONNREFUSED when nobody listens there.
  static Result<HttpClient> connect(const ServerAddress& address, const Clock& clock,
                                    HttpClientOptions options);
  // A stream socket that is connected already; `name` stands for the server in messages.
  HttpClient(Fd socket, std::string name, const Clock& clock, HttpClientOptions options);
  HttpClient(HttpClient&&) noexcept;
  HttpClient& operator=(HttpClient&&) noexcept;
  ~HttpClient();

  // One request, and its whole answer of at most `bytes_max` bytes: too_large beyond. Other errors:
  // io, cancelled. A server that answers before it has read the request is understood.
  Result<HttpAnswer> exchange(const HttpRequest& request, std::size_t bytes_max);

  // The same in pieces: the answer without its body, and then what has come of that, at least one
  // byte in `into` (which is appended to), until `false` says that it is complete.
  Result<HttpAnswer> begin(const HttpRequest& request);
  Result<bool> read_body(std::string& into);

  // Tells the server that nobody waits for the answer any more, and waits until it has let go of
  // the connection, which it does when the work behind it has ended. At most `patience`, and not
  // beyond a signal. True when the server has let go.
  bool leave(std::chrono::milliseconds patience);

 private:
  class Exchange;
  std::unique_ptr<Exchange> exchange_;
};

}  // namespace hutch::cli
