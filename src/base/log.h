// One JSON object a line on standard error: {"time","level","process","event","message",fields...}.
// Owns the shape of a line and how it is written; holds no buffer, no lock and no thread, so a
// forked process goes on logging through its copy. Never put a tenant's code, output or file
// content into a line: events, ids, numbers, names of steps and limits only.
//
// A line is at most 4096 bytes, so that a pipe takes it whole or not at all and the lines of two
// processes never mix. A reader that does not keep up loses lines instead of stopping the server:
// the next line that gets through says how many in "lines_lost".
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "base/clock.h"

namespace hutch {

enum class LogLevel { debug, info, warn, error };
// "debug", "info", "warn", "error"; info for every other word.
LogLevel log_level_named(std::string_view name);

// A further key of a line. Keys are the caller's constants, in snake_case with the unit at the end;
// values may be any bytes. Lives only as long as the call it is an argument of.
struct LogField {
  using Value = std::variant<std::string_view, std::int64_t, std::uint64_t, double, bool>;

  template <class T>
  requires std::is_arithmetic_v<T> LogField(std::string_view name, T number) : key(name) {
    if constexpr (std::is_same_v<T, bool> || std::is_floating_point_v<T>) {
      value = number;
    } else if constexpr (std::is_signed_v<T>) {
      value = static_cast<std::int64_t>(number);
    } else {
      value = static_cast<std::uint64_t>(number);
    }
  }
  LogField(std::string_view name, std::string_view text) : key(name), value(text) {}
  LogField(std::string_view name, const std::string& text) : key(name), value(text) {}
  LogField(std::string_view name, const char* text) : key(name), value(std::string_view(text)) {}

  std::string_view key;
  Value value;
};

struct LogOptions {
  int fd = 2;  // not owned; below 0 everything is dropped
  LogLevel level = LogLevel::info;
  std::string process = "server";  // which of our processes speaks
};

class Log {
 public:
  using Fields = std::initializer_list<LogField>;
  using Where = std::source_location;

  Log(const Clock& clock, LogOptions options);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // `event` is a stable snake_case word to search for, `message` one sentence for people. Lines of
  // level warn and error also carry "source": the place of the call.
  void debug(std::string_view event, std::string_view message, Fields fields = {},
             Where where = Where::current());
  void info(std::string_view event, std::string_view message, Fields fields = {},
            Where where = Where::current());
  void warn(std::string_view event, std::string_view message, Fields fields = {},
            Where where = Where::current());
  void error(std::string_view event, std::string_view message, Fields fields = {},
             Where where = Where::current());

  // From the next line on.
  void set_level(LogLevel level);
  // What a forked process calls first, so that its lines carry its own name.
  void speak_as(std::string process);

 private:
  class Writer;
  void write(LogLevel level, std::string_view event, std::string_view message, Fields fields,
             Where where);

  const Clock& clock_;
  std::string process_;
  std::unique_ptr<Writer> writer_;
};

}  // namespace hutch
