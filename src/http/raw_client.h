// For tests: a client that sends any bytes it is told to, however wrong, and shows what comes back.
// Blocking, with a limit of 20 s on every wait.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "base/fd.h"

namespace hutch::http {

struct RawResponse {
  std::string head;  // with its empty line
  std::string body;

  int status() const { return head.size() < 12 ? 0 : std::atoi(head.c_str() + 9); }
  // The value of the first such field, as our server spells it; "" when there is none.
  std::string field(std::string_view name) const {
    const std::string start = "\r\n" + std::string(name) + ": ";
    const std::size_t at = head.find(start);
    if (at == std::string::npos) return "";
    return head.substr(at + start.size(), head.find('\r', at + 2) - at - start.size());
  }
};

class RawClient {
 public:
  explicit RawClient(std::uint16_t port) : RawClient() { connect(port); }

  // Has its descriptor, and no connection yet.
  RawClient() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval most{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
  }

  void connect(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }

  bool connected() const { return connected_; }

  // False when the server has closed before everything was sent.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  // The next response, its body without its chunks; one without a head when the connection ended
  // first. `Body::none` for the answer to a HEAD request, for 100 Continue, and to take the body
  // with read_chunk().
  enum class Body { by_length, none };
  RawResponse read(Body body = Body::by_length) {
    RawResponse response;
    std::size_t end = 0;
    while ((end = input_.find("\r\n\r\n")) == std::string::npos) {
      if (!fill()) return response;
    }
    response.head = input_.substr(0, end + 4);
    input_.erase(0, end + 4);
    if (body == Body::none) return response;
    if (response.field("Transfer-Encoding") == "chunked") {
      for (std::string chunk = read_chunk(); !chunk.empty(); chunk = read_chunk()) {
        response.body += chunk;
      }
      return response;
    }
    if (response.field("Content-Length").empty()) {
      while (fill()) continue;
      response.body = std::exchange(input_, {});
      return response;
    }
    const std::size_t length = std::strtoul(response.field("Content-Length").c_str(), nullptr, 10);
    while (input_.size() < length && fill()) continue;
    response.body = input_.substr(0, length);
    input_.erase(0, response.body.size());
    return response;
  }

  // The bytes of the next chunk; "" for the last one, and when the connection ended before it.
  std::string read_chunk() {
    std::size_t line = 0;
    while ((line = input_.find("\r\n")) == std::string::npos) {
      if (!fill()) return "";
    }
    const std::size_t size = std::strtoul(input_.c_str(), nullptr, 16);
    while (input_.size() < line + 2 + size + 2) {
      if (!fill()) return "";
    }
    std::string chunk = input_.substr(line + 2, size);
    input_.erase(0, line + 2 + size + 2);
    whole_ = size == 0;
    return chunk;
  }
  // Whether the chunk that was read last said that the body is whole.
  bool whole() const { return whole_; }

  // Whether the server closes without another byte.
  bool at_end() { return input_.empty() && !fill() && ended_; }

  void half_close() { ::shutdown(fd_.get(), SHUT_WR); }
  void close() { fd_.reset(); }
  // Closes with RST instead of FIN.
  void reset() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    fd_.reset();
  }
  int fd() const { return fd_.get(); }

 private:
  bool fill() {
    char bytes[65536];
    const ssize_t size = ::recv(fd_.get(), bytes, sizeof bytes, 0);
    if (size > 0) input_.append(bytes, static_cast<std::size_t>(size));
    ended_ = size == 0;
    return size > 0;
  }

  Fd fd_;
  bool connected_ = false;
  bool ended_ = false;
  bool whole_ = false;
  std::string input_;
};

}  // namespace hutch::http
