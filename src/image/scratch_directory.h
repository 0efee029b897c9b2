// A directory for one test, gone with it. For tests of this room only.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

namespace hutch::image {

class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hutch-image-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  ~ScratchDirectory() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }

  std::string path(std::string_view below = "") const {
    return below.empty() ? path_ : path_ + "/" + std::string(below);
  }
  // Writes a file, making the directories above it.
  void write(std::string_view name, std::string_view text) const {
    const std::filesystem::path file = path(name);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
  }
  void write_program(std::string_view name, std::string_view text) const {
    write(name, text);
    std::filesystem::permissions(path(name), std::filesystem::perms(0755));
  }
  std::string read(std::string_view name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Names directly below a directory, sorted.
  std::set<std::string> list(std::string_view name = "") const {
    std::set<std::string> names;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(path(name), error)) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }

 private:
  std::string path_;
};

}  // namespace hutch::image
