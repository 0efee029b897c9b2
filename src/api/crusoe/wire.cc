#include "api/crusoe/wire.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value.hpp>
#include <limits>

#include "base/base64.h"
#include "base/json.h"
#include "base/utf8.h"

namespace hutch::api::crusoe {
namespace {

namespace bj = boost::json;

// How much of a caller's own text an error repeats.
constexpr std::size_t kEchoBytesMax = 200;

std::string echo(std::string_view text) {
  if (text.size() <= kEchoBytesMax) return std::string(text);
  return std::string(utf8::prefix(text, kEchoBytesMax)) + "...";
}

auto bad(std::string message) { return fail(ErrorCode::bad_request, std::move(message)); }

enum class Null { is_absent, is_wrong };

// The member of that name; null when it is absent.
const bj::value* member(const bj::object& object, std::string_view name, Null null) {
  const bj::value* value = object.if_contains({name.data(), name.size()});
  return value != nullptr && value->is_null() && null == Null::is_absent ? nullptr : value;
}

std::string_view text_of(const bj::value& value) { return value.get_string(); }

// The seconds as they were asked for: -1 for any integer that no limit allows.
Result<std::int64_t> whole_seconds(const bj::value& value) {
  if (value.is_int64()) return value.get_int64();
  // A number without fraction becomes a double only when it is beyond every integer type.
  const bool beyond =
      value.is_uint64() ||
      (value.is_double() && (value.get_double() >= 0x1p63 || value.get_double() < -0x1p63));
  if (beyond) return -1;
  return bad("timeout_s must be an integer");
}

Status check_file(const bj::value& file, const std::string& name) {
  if (!file.is_object()) return bad(name + " must be an object");
  for (const char* key : {"path", "content_b64"}) {
    const bj::value* value = member(file.get_object(), key, Null::is_wrong);
    if (value == nullptr) return bad(name + "." + key + " is required");
    if (!value->is_string()) return bad(name + "." + key + " must be a string");
  }
  return {};
}

bool is_array_of_strings(const bj::value& value) {
  if (!value.is_array()) return false;
  const bj::array& array = value.get_array();
  return std::all_of(array.begin(), array.end(), [](const auto& item) { return item.is_string(); });
}

std::string file_name(std::size_t index) { return "files[" + std::to_string(index) + "]"; }

// The body, once every type in it is right. Pointers into the parsed value.
struct Fields {
  const bj::value* code = nullptr;
  const bj::value* language = nullptr;
  const bj::value* image = nullptr;
  const bj::value* args = nullptr;
  const bj::value* files = nullptr;
  std::int64_t timeout_s = 0;
  bool report = false;
};

Result<Fields> check_types(const bj::object& body) {
  Fields fields;
  fields.code = member(body, "code", Null::is_wrong);
  if (fields.code != nullptr && !fields.code->is_string()) return bad("code must be a string");
  fields.language = member(body, "language", Null::is_absent);
  if (fields.language != nullptr && !fields.language->is_string()) {
    return bad("language must be a string");
  }
  fields.image = member(body, "image", Null::is_absent);
  if (fields.image != nullptr && !fields.image->is_string()) return bad("image must be a string");
  fields.args = member(body, "args", Null::is_absent);
  if (fields.args != nullptr && !is_array_of_strings(*fields.args)) {
    return bad("args must be an array of strings");
  }
  if (const bj::value* timeout = member(body, "timeout_s", Null::is_absent)) {
    fields.timeout_s = TRY(whole_seconds(*timeout));
  }
  fields.files = member(body, "files", Null::is_absent);
  if (fields.files != nullptr) {
    if (!fields.files->is_array()) return bad("files must be an array");
    const bj::array& files = fields.files->get_array();
    for (std::size_t i = 0; i < files.size(); ++i) TRY(check_file(files[i], file_name(i)));
  }
  if (const bj::value* report = member(body, "report", Null::is_absent)) {
    if (!report->is_bool()) return bad("report must be a boolean");
    fields.report = report->get_bool();
  }
  return fields;
}

Result<std::vector<std::string>> decode_args(const bj::array& args) {
  if (args.size() > kArgsMost) {
    return bad("args must be at most " + std::to_string(kArgsMost) + " strings");
  }
  std::vector<std::string> decoded;
  decoded.reserve(args.size());
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string_view text = text_of(args[i]);
    if (text.find('\0') != std::string_view::npos) {
      return bad("args[" + std::to_string(i) + "] must not contain NUL");
    }
    bytes += text.size();
    if (bytes > kArgsBytesMost) {
      return bad("args must be at most " + std::to_string(kArgsBytesMost) + " bytes in all");
    }
    decoded.emplace_back(text);
  }
  return decoded;
}

Result<std::vector<RequestFile>> decode_files(const bj::array& files) {
  std::vector<RequestFile> decoded;
  decoded.reserve(files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    const bj::object& file = files[i].get_object();
    const std::string_view path = text_of(file.at("path"));
    auto bytes = base64::decode(text_of(file.at("content_b64")));
    if (!bytes) {
      return bad(file_name(i) + ".content_b64 is not valid base64 (path '" + echo(path) + "')");
    }
    decoded.push_back({std::string(path), std::move(*bytes)});
  }
  return decoded;
}

void write_end(json::Writer& out, const AnswerEnd& end) {
  out.begin_object().key("cause").string(end.cause);
  if (end.signal) out.key("signal").string(*end.signal);
  if (end.memory_peak_bytes) out.key("memory_peak_bytes").unsigned_integer(*end.memory_peak_bytes);
  out.key("cpu_ms").unsigned_integer(end.cpu_ms);
  if (end.limit) out.key("limit").unsigned_integer(*end.limit);
  if (!end.waived.empty()) {
    out.key("waived").begin_array();
    for (const std::string& name : end.waived) out.string(name);
    out.end_array();
  }
  out.end_object();
}

void write_file(json::Writer& out, const AnswerFile& file) {
  out.begin_object().key("path").string(file.path);
  out.key("size").unsigned_integer(file.bytes.size());
  out.key("type").string(file.type).key("content_b64").base64(file.bytes).end_object();
}

void write_files(json::Writer& out, const std::vector<AnswerFile>& files) {
  out.key("files").begin_array();
  for (const AnswerFile& file : files) write_file(out, file);
  out.end_array();
}

// What is told of files that are not there.
void write_missing(json::Writer& out, const ExecuteAnswer& answer) {
  if (answer.files_omitted) {
    out.key("files_omitted").begin_array();
    for (const AnswerOmission& file : *answer.files_omitted) {
      out.begin_object().key("path").string(file.path);
      out.key("size").unsigned_integer(file.size).key("reason").string(file.reason).end_object();
    }
    out.end_array();
  }
  if (answer.files_omitted_count) {
    out.key("files_omitted_count").unsigned_integer(*answer.files_omitted_count);
  }
  if (answer.files_deleted) {
    out.key("files_deleted").begin_array();
    for (const std::string& path : *answer.files_deleted) out.string(path);
    out.end_array();
  }
}

enum class Parts { all, end };

std::string write(const ExecuteAnswer& answer, Parts parts, std::size_t expected_bytes) {
  json::Writer out;
  out.reserve(expected_bytes);
  out.begin_object().key("sandbox_id").string(answer.sandbox_id);
  if (parts == Parts::all) {
    out.key("stdout").string(answer.stdout_text).key("stderr").string(answer.stderr_text);
  }
  out.key("exit_code").integer(answer.exit_code);
  out.key("duration_ms").unsigned_integer(answer.duration_ms);
  if (parts == Parts::all && answer.files) write_files(out, *answer.files);
  write_missing(out, answer);
  if (answer.end) write_end(out.key("end"), *answer.end);
  if (answer.stdout_bytes) out.key("stdout_bytes").unsigned_integer(*answer.stdout_bytes);
  if (answer.stderr_bytes) out.key("stderr_bytes").unsigned_integer(*answer.stderr_bytes);
  out.end_object();
  return out.take();
}

// What the document will need about, so that a large one is not copied while it grows.
std::size_t expected_size(const ExecuteAnswer& answer) {
  std::size_t bytes = 1024 + answer.stdout_text.size() + answer.stderr_text.size();
  if (!answer.files) return bytes;
  for (const AnswerFile& file : *answer.files) bytes += 256 + file.bytes.size() / 3 * 4;
  return bytes;
}

}  // namespace

Result<ExecuteRequest> decode_execute(std::string_view body, const ServedImage& image) {
  const auto parsed = json::parse(body);
  if (!parsed || !parsed->is_object()) return bad("invalid JSON body");
  const Fields fields = TRY(check_types(parsed->get_object()));
  if (fields.code == nullptr || fields.code->get_string().empty()) return bad("code is required");
  if (fields.language != nullptr && text_of(*fields.language) != "python") {
    return bad("unsupported language \"" + echo(text_of(*fields.language)) + "\"");
  }
  if (fields.image != nullptr && text_of(*fields.image) != image.name &&
      (image.digest.empty() || text_of(*fields.image) != image.digest)) {
    return bad("image must be \"" + image.name + "\": this server serves no other");
  }
  if (fields.timeout_s < 0 || fields.timeout_s > kTimeoutMostS) {
    return bad("timeout_s must be between 1 and 60");
  }
  ExecuteRequest request{.code = std::string(text_of(*fields.code)), .report = fields.report};
  if (fields.timeout_s > 0) request.timeout_s = static_cast<std::uint32_t>(fields.timeout_s);
  if (fields.args != nullptr) request.args = TRY(decode_args(fields.args->get_array()));
  if (fields.files != nullptr) request.files = TRY(decode_files(fields.files->get_array()));
  return request;
}

std::string encode(const ExecuteAnswer& answer) {
  return write(answer, Parts::all, expected_size(answer));
}

std::string encode_end(const ExecuteAnswer& answer) { return write(answer, Parts::end, 1024); }

std::string encode(const AnswerFile& file) {
  json::Writer out;
  out.reserve(256 + file.path.size() + file.bytes.size() / 3 * 4);
  write_file(out, file);
  return out.take();
}

std::string encode(const PoolAnswer& answer) {
  json::Writer out;
  out.begin_object().key("warm").unsigned_integer(answer.warm);
  out.key("target").unsigned_integer(answer.target);
  out.key("in_flight").unsigned_integer(answer.in_flight);
  out.key("created_total").unsigned_integer(answer.created_total).end_object();
  return out.take();
}

}  // namespace hutch::api::crusoe
