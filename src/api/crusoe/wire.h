// POST /v1/execute as it stands on the wire: the request as the caller wrote it, the answer as the
// caller reads it. Reading checks everything that can be said without a sandbox.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace hutch::api::crusoe {

constexpr std::uint32_t kTimeoutDefaultS = 20;
constexpr std::uint32_t kTimeoutMostS = 60;
constexpr std::size_t kArgsMost = 1024;
constexpr std::size_t kArgsBytesMost = 128_KiB;  // all together; the command line of a process

struct RequestFile {
  std::string path;
  std::string bytes;  // of content_b64
};

struct ExecuteRequest {
  std::string code;
  std::vector<std::string> args;               // without NUL
  std::uint32_t timeout_s = kTimeoutDefaultS;  // 0 and absent have become the default
  std::vector<RequestFile> files;
  bool report = false;  // every key of the answer, not only those that carry information
};

// The one image that programs run in; a request may name it, by either.
struct ServedImage {
  std::string name = "python";
  std::string digest;  // empty: none
};

// Every failure is bad_request with the sentence for the caller. In this order: the JSON, the types
// of all fields, a code that is not empty, the language, the image, the range of timeout_s, the
// args, base64.
// null is a wrong type for what is required (code, path, content_b64) and absent elsewhere; unknown
// fields are ignored.
Result<ExecuteRequest> decode_execute(std::string_view body, const ServedImage& image);

struct AnswerFile {
  std::string path;
  std::string type;
  std::string bytes;
};

struct AnswerOmission {
  std::string path;
  std::uint64_t size = 0;
  std::string_view reason;
};

struct AnswerEnd {
  std::string_view cause;
  std::optional<std::string> signal;  // "SIGKILL"
  std::optional<std::uint64_t> memory_peak_bytes;
  std::uint64_t cpu_ms = 0;
  std::optional<std::uint64_t> limit;
  std::vector<std::string> waived;
};

// Keys in the order of writing; what is empty is left out.
struct ExecuteAnswer {
  std::string sandbox_id;
  std::string stdout_text;
  std::string stderr_text;
  int exit_code = 0;
  std::uint64_t duration_ms = 0;
  std::optional<std::vector<AnswerFile>> files;
  std::optional<std::vector<AnswerOmission>> files_omitted;
  std::optional<std::uint64_t> files_omitted_count;
  std::optional<std::vector<std::string>> files_deleted;
  std::optional<AnswerEnd> end;
  std::optional<std::uint64_t> stdout_bytes;
  std::optional<std::uint64_t> stderr_bytes;
};

std::string encode(const ExecuteAnswer& answer);
// Without stdout, stderr and files.
std::string encode_end(const ExecuteAnswer& answer);
std::string encode(const AnswerFile& file);

// GET /v1/pool.
struct PoolAnswer {
  std::uint32_t warm = 0;
  std::uint32_t target = 0;
  std::uint32_t in_flight = 0;
  std::uint64_t created_total = 0;
};

std::string encode(const PoolAnswer& answer);

}  // namespace hutch::api::crusoe
