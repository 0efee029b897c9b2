#include "base/log.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/formatter.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <utility>

namespace hutch {
namespace {

using Buffer = spdlog::memory_buf_t;

constexpr std::size_t kLineBytesMax = 4096;  // PIPE_BUF of Linux
// What one string of a line may take, so that no message and no field pushes the others out.
constexpr std::size_t kTextBytesMax = 1024;

void append(Buffer& out, std::string_view text) {
  out.append(text.data(), text.data() + text.size());
}

// The length of the well-formed UTF-8 sequence that `bytes` starts with; 0 where there is none.
// Overlong forms, surrogates and values beyond U+10FFFF are not well-formed.
std::size_t sequence_length(std::string_view bytes) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char first = at(0);
  if (first < 0x80) return 1;
  std::size_t length = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    return 0;
  }
  if (bytes.size() < length || at(1) < low || at(1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (at(i) < 0x80 || at(i) > 0xBF) return 0;
  }
  return length;
}

// Control characters, DEL and the second block of controls: a terminal that shows the log must not
// obey what somebody smuggled into a name.
bool is_control(std::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return first < 0x20 || first == 0x7F;
  return sequence.size() == 2 && first == 0xC2 && static_cast<unsigned char>(sequence[1]) < 0xA0;
}

// `text` as a JSON string: bytes that are no UTF-8 become U+FFFD, controls \u00XX.
void append_json(Buffer& out, std::string_view text) {
  append(out, "\"");
  const std::size_t limit = out.size() + kTextBytesMax;
  while (!text.empty()) {
    if (out.size() >= limit) {
      append(out, "...");
      break;
    }
    const std::size_t length = sequence_length(text);
    const std::string_view sequence = text.substr(0, length == 0 ? 1 : length);
    if (length == 0) {
      append(out, "\xEF\xBF\xBD");
    } else if (is_control(sequence)) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}",
                     static_cast<unsigned char>(sequence.back()));
    } else {
      if (sequence == "\"" || sequence == "\\") append(out, "\\");
      append(out, sequence);
    }
    text.remove_prefix(sequence.size());
  }
  append(out, "\"");
}

void append_value(Buffer& out, const LogField::Value& value) {
  if (const auto* text = std::get_if<std::string_view>(&value)) return append_json(out, *text);
  if (const auto* flag = std::get_if<bool>(&value)) return append(out, *flag ? "true" : "false");
  auto end = std::back_inserter(out);
  if (const auto* number = std::get_if<std::int64_t>(&value)) fmt::format_to(end, "{}", *number);
  if (const auto* number = std::get_if<std::uint64_t>(&value)) fmt::format_to(end, "{}", *number);
  if (const auto* number = std::get_if<double>(&value)) {
    // JSON has no word for what is not finite.
    if (std::isfinite(*number)) return static_cast<void>(fmt::format_to(end, "{}", *number));
    append(out, "null");
  }
}

void append_pair(Buffer& out, std::string_view key, const LogField::Value& value) {
  append(out, ",");
  append_json(out, key);
  append(out, ":");
  append_value(out, value);
}

// "src/cli/serve.cc" whatever directory the compiler was started in.
std::string_view short_path(std::string_view file) {
  const std::size_t at = file.rfind("/src/");
  return at == std::string_view::npos ? file : file.substr(at + 1);
}

std::string_view level_word(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::debug: return "debug";
    case spdlog::level::warn: return "warn";
    case spdlog::level::err: return "error";
    default: return "info";
  }
}

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warn: return spdlog::level::warn;
    case LogLevel::error: return spdlog::level::err;
  }
  return spdlog::level::info;
}

// Puts time and level in front of a payload that already is the rest of the object.
class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, Buffer& out) override {
    using namespace std::chrono;
    const auto time = floor<milliseconds>(message.time);
    const auto day = floor<days>(time);
    const year_month_day date{day};
    const hh_mm_ss clock{time - day};
    fmt::format_to(std::back_inserter(out),
                   R"({{"time":"{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z","level":"{}")",
                   static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                   static_cast<unsigned>(date.day()), clock.hours().count(),
                   clock.minutes().count(), clock.seconds().count(), clock.subseconds().count(),
                   level_word(message.level));
    out.append(message.payload.begin(), message.payload.end());
  }
  std::unique_ptr<formatter> clone() const override { return std::make_unique<JsonFormatter>(); }
};

// Writes each line with one system call and never waits for the reader. O_NONBLOCK would do the
// same but belongs to the open file, which our parent and its other children share.
class DescriptorSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit DescriptorSink(int fd) : base_sink(std::make_unique<JsonFormatter>()), fd_(fd) {
    struct stat info {};
    is_socket_ = ::fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode);
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (fd_ < 0) return;
    Buffer line;
    formatter_->format(message, line);
    if (lost_ > 0) append_pair(line, "lines_lost", lost_);
    append(line, "}\n");
    if (line.size() <= kLineBytesMax && put(line)) {
      lost_ = 0;
    } else {
      ++lost_;
    }
  }
  void flush_() override {}

 private:
  bool put(const Buffer& line) const {
    if (is_socket_) {
      return ::send(fd_, line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
             static_cast<ssize_t>(line.size());
    }
    // A pipe that polls as writable takes PIPE_BUF bytes without blocking; a file always does.
    pollfd ready{fd_, POLLOUT, 0};
    if (::poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0) return false;
    return ::write(fd_, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  }

  int fd_;
  bool is_socket_ = false;
  std::uint64_t lost_ = 0;
};

}  // namespace

LogLevel log_level_named(std::string_view name) {
  if (name == "debug") return LogLevel::debug;
  if (name == "warn") return LogLevel::warn;
  if (name == "error") return LogLevel::error;
  return LogLevel::info;
}

class Log::Writer {
 public:
  explicit Writer(const LogOptions& options)
      : logger_("hutch", std::make_shared<DescriptorSink>(options.fd)) {
    logger_.set_level(level_of(options.level));
  }
  void set_level(LogLevel level) { logger_.set_level(level_of(level)); }
  bool wants(LogLevel level) const { return logger_.should_log(level_of(level)); }
  void write(std::int64_t wall_ms, LogLevel level, const Buffer& payload) {
    logger_.log(spdlog::log_clock::time_point(std::chrono::milliseconds(wall_ms)),
                spdlog::source_loc{}, level_of(level),
                spdlog::string_view_t(payload.data(), payload.size()));
  }

 private:
  spdlog::logger logger_;
};

Log::Log(const Clock& clock, LogOptions options)
    : clock_(clock),
      process_(std::move(options.process)),
      writer_(std::make_unique<Writer>(options)) {}

Log::~Log() = default;

void Log::set_level(LogLevel level) { writer_->set_level(level); }

void Log::speak_as(std::string process) { process_ = std::move(process); }

void Log::write(LogLevel level, std::string_view event, std::string_view message, Fields fields,
                Where where) {
  if (!writer_->wants(level)) return;
  // What is kept free at the end: "source", "lines_lost" and the closing brace.
  constexpr std::size_t kReserve = 512;
  Buffer payload;
  append_pair(payload, "process", process_);
  append_pair(payload, "event", event);
  append_pair(payload, "message", message);
  for (const LogField& field : fields) {
    const std::size_t before = payload.size();
    append_pair(payload, field.key, field.value);
    if (payload.size() <= kLineBytesMax - kReserve) continue;
    payload.resize(before);
    append_pair(payload, "fields_cut", true);
    break;
  }
  if (level == LogLevel::warn || level == LogLevel::error) {
    const std::string source = fmt::format("{}:{}", short_path(where.file_name()), where.line());
    append_pair(payload, "source", std::string_view(source));
  }
  writer_->write(clock_.wall_ms(), level, payload);
}

void Log::debug(std::string_view event, std::string_view message, Fields fields, Where where) {
  write(LogLevel::debug, event, message, fields, where);
}
void Log::info(std::string_view event, std::string_view message, Fields fields, Where where) {
  write(LogLevel::info, event, message, fields, where);
}
void Log::warn(std::string_view event, std::string_view message, Fields fields, Where where) {
  write(LogLevel::warn, event, message, fields, where);
}
void Log::error(std::string_view event, std::string_view message, Fields fields, Where where) {
  write(LogLevel::error, event, message, fields, where);
}

}  // namespace hutch
