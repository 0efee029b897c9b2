// The server's end of the socket to the warden: requests out, reports in, whole messages only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "engine/watched_fd.h"
#include "warden/protocol.h"

namespace hutch::engine {

class WardenLink : public std::enable_shared_from_this<WardenLink> {
 public:
  struct Handlers {
    std::function<void(const warden::Report&, std::vector<Fd>)> report;
    // The warden is gone for good. Called once, from the loop; nothing comes after it.
    std::function<void(Error)> gone;
  };

  WardenLink(boost::asio::io_context& io, Handlers handlers) : io_(io), handlers_(handlers) {}
  void start(Fd socket);
  // Lost when the warden is gone: its end has been told, or is about to be.
  void ask(const warden::Request& request);
  void close();

 private:
  void receive();
  void flush();
  void fail_later(Error error);

  boost::asio::io_context& io_;
  Handlers handlers_;
  WatchedFd socket_;
  std::deque<warden::Request> waiting_;
  bool awaiting_room_ = false;
};

}  // namespace hutch::engine
