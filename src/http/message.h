// One request and one response as plain values. What a handler sees of HTTP, and nothing more.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hutch::http {

class BodyWriter;

// Makes a body while it is sent; returns when it is whole, or the connection is gone.
using BodyStream = std::function<boost::asio::awaitable<void>(BodyWriter&)>;

struct Field {
  std::string name;
  std::string value;
};

struct Request {
  std::string id;  // the X-Request-Id of the answer
  std::string method;
  std::string path;   // as sent, up to '?'; nothing in it is ever decoded
  std::string query;  // as sent, behind '?'
  std::vector<Field> fields;
  std::string body;  // complete, without its transfer coding
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<Field> fields;  // besides what the session writes itself: type, length, id, date
  // The client has left, so that there is nobody to answer: the connection is closed instead.
  bool abandoned = false;
  // In place of `body`: called once, when the head is out. Until it returns the handler's Departure
  // goes on telling whether the client is still there.
  BodyStream stream;
};

// {"error":"<message>"}, the shape of every error that this server makes.
Response error_response(int status, std::string_view message);

// "Not Found"; "Unknown" for a status that this server does not use.
std::string_view reason_phrase(int status);

// Whether two field names are the same: letters without case.
bool same_name(std::string_view a, std::string_view b);

}  // namespace hutch::http
