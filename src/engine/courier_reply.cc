#include "engine/courier_reply.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/utf8.h"

namespace hutch::engine {
namespace {

using plan::RecordKind;

constexpr std::uint64_t kHeadBytes = 14;

tl::unexpected<Error> unreadable(const char* what) {
  return fail(ErrorCode::unreadable_reply, Step::files_out,
              std::string("the files that came back cannot be read: ") + what);
}

template <class Number>
Number number_at(const std::string& bytes, std::size_t at) {
  Number number{};
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

// Whether the path can name something inside a directory, whoever joins it to that directory.
bool stays_inside(std::string_view path) {
  if (path.empty() || path.find('\0') != std::string_view::npos) return false;
  while (true) {
    const std::string_view part = path.substr(0, path.find('/'));
    if (part.empty() || part == "." || part == "..") return false;
    if (part.size() == path.size()) return true;
    path.remove_prefix(part.size() + 1);
  }
}

// Valid UTF-8 in any case: bytes that are none are shown as \xNN.
std::string shown(std::string_view path) {
  std::string text;
  while (!path.empty()) {
    std::size_t length = 1;
    while (length <= 4 && !utf8::is_valid(path.substr(0, length))) ++length;
    if (length <= 4) {
      text += path.substr(0, length);
      path.remove_prefix(std::min(length, path.size()));
    } else {
      constexpr std::string_view kDigits = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(path.front());
      text += {'\\', 'x', kDigits[byte / 16], kDigits[byte % 16]};
      path.remove_prefix(1);
    }
  }
  return text;
}

// Such directories are never looked into, so nothing is known of what lies there.
bool in_pycache(std::string_view path) {
  return path.starts_with("__pycache__/") || path.find("/__pycache__/") != std::string_view::npos;
}

constexpr auto kByPath = [](const auto& a, const auto& b) { return a.path < b.path; };

}  // namespace

CourierReply::CourierReply(const model::Limits& limits, const std::vector<model::InputFile>& sent)
    : limits_(limits), part_size_(kHeadBytes) {
  for (const auto& file : sent) sent_.emplace(model::normalized_path(file.path), false);
}

Status CourierReply::feed(std::span<const std::byte> bytes) {
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (!rest.empty()) {
    if (complete_) return unreadable("there is more after the end");
    const std::string_view portion = rest.substr(0, part_size_ - pending_.size());
    pending_ += portion;
    rest.remove_prefix(portion.size());
    // A part of no bytes is over as soon as it has begun.
    while (pending_.size() == part_size_ && !complete_) {
      switch (part_) {
        case Part::head: TRY(begin_record()); break;
        case Part::path: TRY(end_path()); break;
        case Part::data: TRY(take_record()); break;
      }
    }
  }
  return {};
}

Status CourierReply::begin_record() {
  head_.kind = static_cast<RecordKind>(pending_[0]);
  head_.reason = static_cast<plan::RecordReason>(pending_[1]);
  head_.path_bytes = number_at<std::uint32_t>(pending_, 2);
  head_.size = number_at<std::uint64_t>(pending_, 6);
  pending_.clear();
  switch (head_.kind) {
    case RecordKind::end:
      if (head_.path_bytes != 0 || head_.size < result_.omitted.size()) {
        return unreadable("the end is not an end");
      }
      // Every entry of a directory costs an inode, so there cannot be more of them.
      if (head_.size > limits_.inodes) return unreadable("more entries than can be");
      result_.omitted_count = head_.size;
      complete_ = true;
      return {};
    case RecordKind::file:
      if (head_.size > limits_.file_bytes || head_.size > limits_.files_bytes - bytes_total_ ||
          result_.files.size() >= limits_.files_count) {
        return unreadable("a file goes beyond the limits");
      }
      break;
    case RecordKind::omitted:
      if (head_.reason > plan::RecordReason::name ||
          result_.omitted.size() >= limits_.files_count) {
        return unreadable("an omission makes no sense");
      }
      break;
    case RecordKind::unchanged: break;
    default: return unreadable("a record of an unknown kind");
  }
  if (head_.path_bytes == 0 || head_.path_bytes > plan::kPathBytesMax) {
    return unreadable("a path of an impossible length");
  }
  part_ = Part::path;
  part_size_ = head_.path_bytes;
  return {};
}

Status CourierReply::end_path() {
  path_ = std::exchange(pending_, {});
  // An omission may name a directory by its path with a slash behind it.
  std::string_view checked = path_;
  if (head_.kind == RecordKind::omitted && checked.ends_with('/')) checked.remove_suffix(1);
  if (!stays_inside(checked)) return unreadable("a path that leads out");
  part_ = Part::data;
  part_size_ = head_.kind == RecordKind::file ? head_.size : 0;
  return {};
}

Status CourierReply::take_record() {
  switch (head_.kind) {
    case RecordKind::unchanged: TRY(take_unchanged()); break;
    case RecordKind::omitted: TRY(take_omitted()); break;
    default: {
      if (!utf8::is_valid(path_)) return unreadable("a file's name is not UTF-8");
      bytes_total_ += pending_.size();
      if (const auto met = sent_.find(path_); met != sent_.end()) met->second = true;
      result_.files.push_back({std::move(path_), std::exchange(pending_, {})});
    }
  }
  pending_.clear();
  part_ = Part::head;
  part_size_ = kHeadBytes;
  return {};
}

Status CourierReply::take_unchanged() {
  const auto met = sent_.find(path_);
  if (met == sent_.end() || met->second) return unreadable("a file that was never sent");
  met->second = true;
  return {};
}

Status CourierReply::take_omitted() {
  if (const auto met = sent_.find(path_); met != sent_.end()) met->second = true;
  result_.omitted.push_back(
      {shown(path_), head_.size, static_cast<model::OmitReason>(head_.reason)});
  return {};
}

bool CourierReply::surely_gone(const std::string& path) const {
  if (in_pycache(path) || result_.omitted_count > result_.omitted.size()) return false;
  const auto hides = [&](const model::OmittedFile& omitted) {
    if (omitted.reason != model::OmitReason::unreadable) return false;
    const std::string directory = omitted.path.ends_with('/') ? omitted.path : omitted.path + "/";
    return path.starts_with(directory);
  };
  return std::none_of(result_.omitted.begin(), result_.omitted.end(), hides);
}

ReturnedFiles CourierReply::take() {
  for (const auto& [path, met] : sent_) {
    if (!met && surely_gone(path)) result_.deleted.push_back(path);
  }
  std::sort(result_.files.begin(), result_.files.end(), kByPath);
  std::sort(result_.omitted.begin(), result_.omitted.end(), kByPath);
  return std::move(result_);
}

std::vector<std::string> all_deleted(const std::vector<model::InputFile>& sent) {
  std::vector<std::string> deleted;
  for (const auto& file : sent) deleted.push_back(model::normalized_path(file.path));
  std::sort(deleted.begin(), deleted.end());
  return deleted;
}

}  // namespace hutch::engine
