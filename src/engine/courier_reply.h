// Understands what a courier sends when it brings files out (plan/courier_wire.h). Every byte is
// hostile: lengths are held against the limits that the courier was told, names against what a path
// inside a working directory can be, and no memory is taken for what has not arrived. No I/O.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/limits.h"
#include "model/shot.h"
#include "plan/courier_wire.h"

namespace hutch::engine {

struct ReturnedFiles {
  std::vector<model::OutputFile> files;     // ordered by path
  std::vector<model::OmittedFile> omitted;  // ordered by path, at most Limits::files_count
  std::uint64_t omitted_count = 0;          // in truth
  // Input files that are gone, ordered. Only those that are surely gone: what lies in a directory
  // that could not be read, or behind omissions that were only counted, is not named.
  std::vector<std::string> deleted;
};

class CourierReply {
 public:
  CourierReply(const model::Limits& limits, const std::vector<model::InputFile>& sent);

  // Takes the stream in portions of any size. Fails as unreadable_reply; the reply is of no use
  // then.
  Status feed(std::span<const std::byte> bytes);
  // The last record has come.
  bool complete() const { return complete_; }
  // Precondition: complete().
  ReturnedFiles take();

 private:
  struct Head {
    plan::RecordKind kind{};
    plan::RecordReason reason{};
    std::uint32_t path_bytes = 0;
    std::uint64_t size = 0;
  };

  Status begin_record();
  Status end_path();
  Status take_record();
  Status take_unchanged();
  Status take_omitted();
  bool surely_gone(const std::string& path) const;

  model::Limits limits_;
  std::map<std::string, bool> sent_;  // whether the file was met again, by normalized path
  ReturnedFiles result_;
  Head head_;
  enum class Part { head, path, data } part_ = Part::head;
  std::string pending_;  // the bytes of the current part, up to part_size_
  std::uint64_t part_size_;
  std::string path_;
  std::uint64_t bytes_total_ = 0;
  bool complete_ = false;
};

// What is said of input files when the working directory turned out to be empty.
std::vector<std::string> all_deleted(const std::vector<model::InputFile>& sent);

}  // namespace hutch::engine
