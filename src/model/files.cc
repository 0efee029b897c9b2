#include "model/files.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/utf8.h"

namespace hutch::model {
namespace {

constexpr std::size_t kPathBytesMax = 4096;
constexpr std::size_t kComponentBytesMax = 255;
constexpr std::size_t kComponentsMax = 64;

std::vector<std::string_view> components(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), part.size() + 1));
    if (!part.empty() && part != ".") parts.push_back(part);
  }
  return parts;
}

std::string quoted(std::string_view path) {
  std::string text = "'";
  for (const char c : path) {
    if (c == '\0') {
      text += "\\x00";
    } else {
      text += c;
    }
  }
  return text + "'";
}

struct Ending {
  std::string_view ending;
  std::string_view type;
};

// Sorted by ending.
constexpr auto kEndings = std::to_array<Ending>({
    {"7z", "application/x-7z-compressed"},
    {"aac", "audio/aac"},
    {"avi", "video/x-msvideo"},
    {"avif", "image/avif"},
    {"bash", "application/x-sh"},
    {"bmp", "image/bmp"},
    {"bz2", "application/x-bzip2"},
    {"c", "text/x-c"},
    {"cpp", "text/x-c++"},
    {"css", "text/css"},
    {"csv", "text/csv"},
    {"db", "application/vnd.sqlite3"},
    {"doc", "application/msword"},
    {"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
    {"eps", "application/postscript"},
    {"epub", "application/epub+zip"},
    {"feather", "application/vnd.apache.arrow.file"},
    {"flac", "audio/flac"},
    {"geojson", "application/geo+json"},
    {"gif", "image/gif"},
    {"gz", "application/gzip"},
    {"h5", "application/x-hdf5"},
    {"hdf5", "application/x-hdf5"},
    {"htm", "text/html"},
    {"html", "text/html"},
    {"ico", "image/vnd.microsoft.icon"},
    {"ini", "text/plain"},
    {"ipynb", "application/x-ipynb+json"},
    {"jpeg", "image/jpeg"},
    {"jpg", "image/jpeg"},
    {"js", "text/javascript"},
    {"json", "application/json"},
    {"jsonl", "application/jsonl"},
    {"log", "text/plain"},
    {"md", "text/markdown"},
    {"mid", "audio/midi"},
    {"mjs", "text/javascript"},
    {"mov", "video/quicktime"},
    {"mp3", "audio/mpeg"},
    {"mp4", "video/mp4"},
    {"npy", "application/octet-stream"},
    {"npz", "application/zip"},
    {"odp", "application/vnd.oasis.opendocument.presentation"},
    {"ods", "application/vnd.oasis.opendocument.spreadsheet"},
    {"odt", "application/vnd.oasis.opendocument.text"},
    {"ogg", "audio/ogg"},
    {"otf", "font/otf"},
    {"parquet", "application/vnd.apache.parquet"},
    {"pdf", "application/pdf"},
    {"pickle", "application/octet-stream"},
    {"pkl", "application/octet-stream"},
    {"png", "image/png"},
    {"ppt", "application/vnd.ms-powerpoint"},
    {"pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
    {"ps", "application/postscript"},
    {"py", "text/x-python"},
    {"rst", "text/x-rst"},
    {"rtf", "application/rtf"},
    {"sh", "application/x-sh"},
    {"sql", "application/sql"},
    {"sqlite", "application/vnd.sqlite3"},
    {"svg", "image/svg+xml"},
    {"tar", "application/x-tar"},
    {"tex", "application/x-tex"},
    {"tgz", "application/gzip"},
    {"tif", "image/tiff"},
    {"tiff", "image/tiff"},
    {"toml", "application/toml"},
    {"ts", "text/x-typescript"},
    {"tsv", "text/tab-separated-values"},
    {"ttf", "font/ttf"},
    {"txt", "text/plain"},
    {"wav", "audio/wav"},
    {"webm", "video/webm"},
    {"webp", "image/webp"},
    {"woff", "font/woff"},
    {"woff2", "font/woff2"},
    {"xls", "application/vnd.ms-excel"},
    {"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
    {"xml", "application/xml"},
    {"xz", "application/x-xz"},
    {"yaml", "application/yaml"},
    {"yml", "application/yaml"},
    {"zip", "application/zip"},
    {"zst", "application/zstd"},
});

static_assert(std::is_sorted(kEndings.begin(), kEndings.end(),
                             [](const Ending& a, const Ending& b) { return a.ending < b.ending; }));

bool has_control_bytes(std::string_view bytes) {
  return std::any_of(bytes.begin(), bytes.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    const bool layout = byte == '\n' || byte == '\r' || byte == '\t' || byte == '\f';
    return (byte < 0x20 && !layout) || byte == 0x7f;
  });
}

}  // namespace

std::string_view omit_reason_name(OmitReason reason) {
  switch (reason) {
    case OmitReason::too_large: return "too_large";
    case OmitReason::total: return "total";
    case OmitReason::count: return "count";
    case OmitReason::not_regular: return "not_regular";
    case OmitReason::unreadable: return "unreadable";
    case OmitReason::name: return "name";
  }
  return "unreadable";
}

std::optional<std::string> path_problem(std::string_view path) {
  if (path.empty()) return "file path is empty";
  if (path.size() > kPathBytesMax) return "file path is longer than 4096 bytes";
  if (path.find('\0') != std::string_view::npos) {
    return "file path contains a NUL byte: " + quoted(path);
  }
  const auto parts = components(path);
  const bool climbs = std::find(parts.begin(), parts.end(), "..") != parts.end();
  if (path.front() == '/' || climbs) return "file path escapes working directory: " + quoted(path);
  if (parts.empty() || path.ends_with('/') || path.ends_with("/.")) {
    return "file path names a directory: " + quoted(path);
  }
  if (parts.size() > kComponentsMax) {
    return "file path has more than 64 components: " + quoted(path);
  }
  for (const std::string_view part : parts) {
    if (part.size() > kComponentBytesMax) {
      return "file path has a component longer than 255 bytes: " + quoted(path);
    }
  }
  if (!utf8::is_valid(path)) return "file path is not valid UTF-8";
  return std::nullopt;
}

std::string normalized_path(std::string_view path) {
  std::string normalized;
  for (const std::string_view part : components(path)) {
    if (!normalized.empty()) normalized += '/';
    normalized += part;
  }
  return normalized;
}

// Sorted, so that a request of many deep paths costs everybody else on this thread little: with a
// NUL, which no path has, for the slash, a directory stands right before what lies in it.
std::optional<std::string> collision_problem(const std::vector<InputFile>& files) {
  std::vector<std::pair<std::string, std::size_t>> sorted;
  sorted.reserve(files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    sorted.emplace_back(normalized_path(files[i].path), i);
    std::replace(sorted.back().first.begin(), sorted.back().first.end(), '/', '\0');
  }
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const auto& [path, at] = sorted[i - 1];
    const auto& [next, next_at] = sorted[i];
    if (!next.starts_with(path)) continue;
    if (next.size() == path.size()) {
      return "file paths " + quoted(files[at].path) + " and " + quoted(files[next_at].path) +
             " name the same file";
    }
    if (next[path.size()] == '\0') {
      return "file path " + quoted(files[at].path) + " is a directory of file path " +
             quoted(files[next_at].path);
    }
  }
  return std::nullopt;
}

std::string mime_type(std::string_view path, std::string_view bytes) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::size_t dot = name.rfind('.');
  if (dot != std::string_view::npos && dot > 0) {
    std::string ending(name.substr(dot + 1));
    for (char& c : ending) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    const auto found =
        std::lower_bound(kEndings.begin(), kEndings.end(), ending,
                         [](const Ending& a, const std::string& b) { return a.ending < b; });
    if (found != kEndings.end() && found->ending == ending) return std::string(found->type);
  }
  const bool text = utf8::is_valid(bytes) && !has_control_bytes(bytes);
  return text ? "text/plain" : "application/octet-stream";
}

}  // namespace hutch::model
