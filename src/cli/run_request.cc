#include "cli/run_request.h"

#include "base/json.h"

namespace hutch::cli {

std::string encode(const RunRequest& request) {
  std::size_t bytes = 1024 + request.code.size();
  for (const model::InputFile& file : request.files) bytes += 256 + file.bytes.size() / 3 * 4;
  json::Writer out;
  out.reserve(bytes);
  // An empty program is one that does nothing; the server wants to see some code.
  out.begin_object().key("code").string(request.code.empty() ? "\n" : request.code);
  if (request.timeout_s) out.key("timeout_s").unsigned_integer(*request.timeout_s);
  if (!request.image.empty()) out.key("image").string(request.image);
  if (!request.args.empty()) {
    out.key("args").begin_array();
    for (const std::string& argument : request.args) out.string(argument);
    out.end_array();
  }
  if (!request.files.empty()) {
    out.key("files").begin_array();
    for (const model::InputFile& file : request.files) {
      out.begin_object().key("path").string(file.path);
      out.key("content_b64").base64(file.bytes).end_object();
    }
    out.end_array();
  }
  out.key("report").boolean(true).end_object();
  return out.take();
}

}  // namespace hutch::cli
