// Files that go into a sandbox and come back from it, and the one rule for their paths. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hutch::model {

struct InputFile {
  std::string path;   // relative to the working directory, as the caller wrote it
  std::string bytes;  // any bytes
};

// A regular file that the run created or changed.
struct OutputFile {
  std::string path;  // relative, valid UTF-8
  std::string bytes;
};

enum class OmitReason { too_large, total, count, not_regular, unreadable, name };

struct OmittedFile {
  std::string path;  // valid UTF-8; names that are not are shown escaped as \xNN
  std::uint64_t size = 0;
  OmitReason reason = OmitReason::unreadable;
};

std::string_view omit_reason_name(OmitReason reason);  // "too_large", ...

// Why a path cannot be used inside a working directory; empty when it can. The sentence is the one
// that the caller reads, for example "file path escapes working directory: '../x'".
// Limits: 4096 bytes in all, 255 a component, 64 components. Any ".." and any absolute path
// escapes; "." components and repeated slashes are harmless.
std::optional<std::string> path_problem(std::string_view path);

// The path without "." components and repeated slashes. Precondition: path_problem() is empty.
std::string normalized_path(std::string_view path);

// Two files of which one is the other, or lies where the other needs a directory:
// a sentence for the caller; empty when the set is fine. Precondition: each path is usable.
std::optional<std::string> collision_problem(const std::vector<InputFile>& files);

// A MIME type from the name's ending, else "text/plain" for UTF-8 text without control bytes, else
// "application/octet-stream".
std::string mime_type(std::string_view path, std::string_view bytes);

}  // namespace hutch::model
