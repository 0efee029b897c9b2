#include "http/response_head.h"

#include <fmt/format.h>

#include <array>
#include <chrono>

namespace hutch::http {
namespace {

void append_field(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  for (const char c : value) out += (c == '\r' || c == '\n' || c == '\0') ? ' ' : c;
  out += "\r\n";
}

}  // namespace

std::string http_date(std::int64_t wall_ms) {
  using namespace std::chrono;
  constexpr std::array<const char*, 7> kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array<const char*, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const sys_time<milliseconds> moment{milliseconds(wall_ms)};
  const auto day = floor<days>(moment);
  const year_month_day date(day);
  const hh_mm_ss<seconds> time(floor<seconds>(moment - day));
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kDays[weekday(day).c_encoding()],
                     static_cast<unsigned>(date.day()),
                     kMonths[static_cast<unsigned>(date.month()) - 1],
                     static_cast<int>(date.year()), time.hours().count(), time.minutes().count(),
                     time.seconds().count());
}

std::string write_response_head(const Response& response, const ResponseHead& head) {
  std::string out = "HTTP/1.1 " + std::to_string(response.status) + " ";
  out += reason_phrase(response.status);
  out += "\r\n";
  append_field(out, "Date", http_date(head.wall_ms));
  append_field(out, "Content-Type", response.content_type);
  switch (head.framing) {
    case Framing::length:
      append_field(out, "Content-Length", std::to_string(response.body.size()));
      break;
    case Framing::chunked: append_field(out, "Transfer-Encoding", "chunked"); break;
    case Framing::until_close: break;
  }
  append_field(out, "X-Request-Id", head.request_id);
  for (const Field& field : response.fields) append_field(out, field.name, field.value);
  switch (head.connection) {
    case ConnectionField::none: break;
    case ConnectionField::close: append_field(out, "Connection", "close"); break;
    case ConnectionField::keep_alive: append_field(out, "Connection", "keep-alive"); break;
  }
  out += "\r\n";
  return out;
}

}  // namespace hutch::http
