#include "cli/state_version.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "base/sys.h"
#include "hutch_version.h"

namespace hutch::cli {
namespace {

constexpr unsigned kBeforeTheFile = 1;
constexpr std::size_t kFileBytesMax = 64;

tl::unexpected<Error> refuse(std::string sentence) {
  return fail(ErrorCode::state_in_use, std::move(sentence));
}

std::string path_of(const std::string& state_dir) { return state_dir + "/version"; }

std::optional<unsigned> parse(std::string_view text) {
  if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number == 0) return std::nullopt;
  return number;
}

std::string readable(const StateVersions& versions) {
  return versions.oldest == versions.newest
             ? fmt::format("version {}", versions.newest)
             : fmt::format("versions {} to {}", versions.oldest, versions.newest);
}

Result<std::optional<std::string>> read_version(const std::string& state_dir) {
  Result<std::string> text = sys::read_file(path_of(state_dir), kFileBytesMax);
  if (text) return std::optional(std::move(*text));
  if (text.error().code == ErrorCode::not_found) return std::optional<std::string>();
  return refuse(
      fmt::format("the state directory {} is not usable: {}", state_dir, describe(text.error())));
}

}  // namespace

Result<unsigned> judge_state_version(const std::string& state_dir,
                                     const std::optional<std::string>& text,
                                     const StateVersions& versions) {
  const std::optional<unsigned> found = text ? parse(*text) : kBeforeTheFile;
  if (!found) {
    return refuse(fmt::format(
        "{0} holds no number: write the version of this directory into it (hutch {1} writes {2}), "
        "or choose another directory with --state-dir",
        path_of(state_dir), kVersion, versions.newest));
  }
  if (*found > versions.newest) {
    return refuse(fmt::format(
        "the state directory {} has version {}, and hutch {} reads {}: install the newer hutch "
        "that wrote it, or choose another directory with --state-dir",
        state_dir, *found, kVersion, readable(versions)));
  }
  if (*found < versions.oldest) {
    return refuse(fmt::format(
        "the state directory {0} has version {1}, and hutch {2} reads {3}: move it away and build "
        "the images again with: hutch image build python --state-dir {0}",
        state_dir, *found, kVersion, readable(versions)));
  }
  return *found;
}

Status check_state_version(const std::string& state_dir) {
  const std::optional<std::string> text = TRY(read_version(state_dir));
  TRY(judge_state_version(state_dir, text, {}));
  return {};
}

Status record_state_version(const std::string& state_dir) {
  const std::optional<std::string> text = TRY(read_version(state_dir));
  const unsigned found = TRY(judge_state_version(state_dir, text, {}));
  // Every layout that is read as it is can be written on as it is, so the number moves up.
  if (text && found == kStateVersion) return {};
  TRY(sys::make_directories(state_dir, 0755));
  return sys::write_file_atomic(path_of(state_dir), fmt::format("{}\n", kStateVersion), 0644);
}

}  // namespace hutch::cli
