// One connection from its first byte to its last: read a request, let its handler answer, write,
// again. Watches for the client's leaving while a handler runs.
#pragma once

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "http/host_rule.h"
#include "http/request_reader.h"
#include "http/response_head.h"
#include "http/server.h"

namespace hutch::http {

class BodyRoom;  // what a body may take of the memory for all of them; session.cc
class Session;

// What all connections of one listener share.
struct SessionHost {
  const Clock& clock;
  Random& random;
  ServerOptions options;
  Router router;
  HostRule host_rule;
  std::set<Session*> sessions;  // each adds and removes itself
  std::uint64_t bodies_bytes = 0;
  std::set<BodyRoom*> rooms;  // each adds and removes itself
  std::uint64_t answers_bytes = 0;
  std::list<Session*> answering;  // those with a large answer under way, first begun first
  bool draining = false;
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  enum class Purpose { serve, refuse_for_number };

  Session(boost::asio::ip::tcp::socket socket, std::shared_ptr<SessionHost> host, Purpose purpose);
  ~Session();

  // Runs until the connection ends; keeps the session alive until then, and then calls `ended`,
  // which may be empty.
  void start(std::function<void()> ended);
  // Ends it if it waits for the next request.
  void drain();
  void close();

 private:
  enum class Input { data, closed, timed_out };
  enum class Next { keep, close, linger };
  class StreamWriter;  // session_stream.cc

  boost::asio::awaitable<void> run();
  boost::asio::awaitable<Next> serve_one();
  boost::asio::awaitable<Next> read_head(RequestReader& reader);
  boost::asio::awaitable<Next> read_body(RequestReader& reader, BodyRoom& room);
  boost::asio::awaitable<Response> handle(const Route& route, Request request);
  boost::asio::awaitable<Next> answer(const Head& head, Response response, Next next);
  boost::asio::awaitable<Next> refuse(Refusal refusal);
  boost::asio::awaitable<bool> write_stream(const BodyStream& stream, Framing framing,
                                            std::uint64_t& sent);
  // What the parts point at must stay until then.
  boost::asio::awaitable<bool> write(std::array<std::string_view, 3> parts);
  boost::asio::awaitable<Input> read_some(std::size_t bytes_max, Nanos wait);
  boost::asio::awaitable<void> linger();

  std::optional<Response> refuse_by_head(const Head& head, const Router::Match& match) const;
  void begin_exchange(const Head* head);
  void hold_answer(std::uint64_t bytes);
  void release_answer();
  void arm_timer(Nanos wait);
  void disarm_timer();
  void watch();
  void look();
  void client_left();
  void end_handler();

  boost::asio::ip::tcp::socket socket_;
  std::shared_ptr<SessionHost> host_;
  const Purpose purpose_;
  std::string input_;  // bytes read and not yet understood; may hold the next requests

  boost::asio::steady_timer timer_;
  std::uint64_t timer_turn_ = 0;
  bool timed_out_ = false;

  boost::asio::steady_timer watch_timer_;
  bool watch_armed_ = false;
  std::shared_ptr<Departure> departure_;  // while a handler runs, and its stream
  bool streaming_ = false;
  bool gone_ = false;  // the client left while its answer was streamed

  bool waiting_for_next_ = false;
  bool closed_ = false;
  std::uint64_t requests_ = 0;

  // The request being answered.
  std::string id_;
  std::string method_;
  std::string route_;
  std::uint64_t body_bytes_in_ = 0;
  Nanos began_{0};
  std::uint64_t answer_bytes_ = 0;  // while it is among those that are answering
};

}  // namespace hutch::http
