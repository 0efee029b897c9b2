#include "cli/run_inputs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/sys.h"
#include "base/utf8.h"
#include "cli/printable.h"

namespace hutch::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kDepthMax = 64;  // components of a name that a server takes

tl::unexpected<Error> refuse(const std::string& argument, std::string_view why) {
  return fail(ErrorCode::config, fmt::format("--in {}: {}", printable(argument), why));
}

struct Argument {
  std::string text;  // as it was given
  std::string path;
  std::string name;
};

bool is_there(const std::string& path) {
  std::error_code ignored;
  return fs::exists(fs::status(path, ignored));
}

Result<Argument> parse(const std::string& text) {
  Argument argument{.text = text, .path = text};
  const std::size_t colon = text.rfind(':');
  if (colon != std::string::npos && !is_there(text)) {
    argument.path = text.substr(0, colon);
    argument.name = text.substr(colon + 1);
    if (argument.name.empty()) return refuse(text, "the NAME behind the colon is empty");
  }
  if (argument.path.empty()) return refuse(text, "write it as PATH or PATH:NAME");
  if (!argument.name.empty()) return argument;
  std::string_view path = argument.path;
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  argument.name = path.substr(path.rfind('/') + 1);
  if (argument.name.empty() || argument.name == "..") {
    return refuse(text, fmt::format("it has no name of its own: give one, {}:NAME", text));
  }
  return argument;
}

class Collector {
 public:
  explicit Collector(const RunInputLimits& limits) : limits_(limits) {}

  Status take(const Argument& argument) {
    struct stat info {};
    if (::stat(argument.path.c_str(), &info) != 0) {
      return refuse(argument.text,
                    describe(sys::last_error(ErrorCode::config, Step::none, "it cannot be read")));
    }
    if (S_ISDIR(info.st_mode)) return take_directory(argument, argument.path, argument.name, 0);
    if (S_ISREG(info.st_mode)) return take_file(argument, argument.path, argument.name);
    return refuse(argument.text, "it is neither a regular file nor a directory");
  }
  RunInputs finish() { return std::move(inputs_); }

 private:
  Status take_directory(const Argument& argument, const std::string& path, const std::string& name,
                        std::size_t depth) {
    if (depth > kDepthMax) {
      return refuse(argument.text, fmt::format("it is deeper than {} directories", kDepthMax));
    }
    std::vector<std::string> entries;
    std::error_code failed;
    for (fs::directory_iterator at(path, failed), end; !failed && at != end; at.increment(failed)) {
      entries.push_back(at->path().filename().string());
      if (entries.size() > limits_.files) return too_many(argument);
    }
    if (failed) {
      return refuse(argument.text,
                    fmt::format("{} cannot be read: {}", printable(path), failed.message()));
    }
    std::sort(entries.begin(), entries.end());
    for (const std::string& entry : entries) {
      const std::string inner = path + "/" + entry;
      struct stat info {};
      if (::lstat(inner.c_str(), &info) != 0) continue;  // gone since it was listed
      const std::string inner_name = name + "/" + entry;
      if (S_ISDIR(info.st_mode)) {
        TRY(take_directory(argument, inner, inner_name, depth + 1));
      } else if (S_ISREG(info.st_mode)) {
        TRY(take_file(argument, inner, inner_name));
      } else {
        inputs_.skipped.push_back(inner);
      }
    }
    return {};
  }

  Status take_file(const Argument& argument, const std::string& path, const std::string& name) {
    if (inputs_.files.size() >= limits_.files) return too_many(argument);
    if (!utf8::is_valid(name)) {
      return refuse(argument.text, fmt::format("the name {} is not UTF-8", printable(name)));
    }
    if (auto problem = model::path_problem(name)) return refuse(argument.text, printable(*problem));
    Result<std::string> bytes = sys::read_file(path, limits_.bytes - bytes_);
    if (!bytes && bytes.error().code == ErrorCode::too_large) {
      return refuse(argument.text,
                    fmt::format("all files together are larger than {} MiB, and one request "
                                "carries no more: send less",
                                limits_.bytes / 1_MiB));
    }
    if (!bytes) return refuse(argument.text, describe(bytes.error()));
    bytes_ += bytes->size();
    inputs_.files.push_back({model::normalized_path(name), std::move(*bytes)});
    return {};
  }

  tl::unexpected<Error> too_many(const Argument& argument) const {
    return refuse(argument.text,
                  fmt::format("there are more than {} files, and one request carries no more: pack "
                              "them into an archive",
                              limits_.files));
  }

  const RunInputLimits& limits_;
  std::uint64_t bytes_ = 0;
  RunInputs inputs_;
};

}  // namespace

Result<RunInputs> read_inputs(const std::vector<std::string>& arguments,
                              const RunInputLimits& limits) {
  Collector collector(limits);
  for (const std::string& text : arguments) {
    const Argument argument = TRY(parse(text));
    TRY(collector.take(argument));
  }
  RunInputs inputs = collector.finish();
  if (auto problem = model::collision_problem(inputs.files)) {
    return fail(ErrorCode::config,
                fmt::format("--in: {}: give one of them another NAME", printable(*problem)));
  }
  return inputs;
}

}  // namespace hutch::cli
