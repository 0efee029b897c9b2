// One run as a caller asks for it, and its body of POST /v1/execute. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/files.h"

namespace hutch::cli {

struct RunRequest {
  std::string code;  // UTF-8
  std::optional<std::uint32_t> timeout_s;
  std::vector<std::string> args;  // UTF-8
  std::vector<model::InputFile> files;
  std::string image;  // empty: the one that is served
};

std::string encode(const RunRequest& request);

}  // namespace hutch::cli
