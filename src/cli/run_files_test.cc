#include "cli/run_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "base/sys.h"

namespace hutch::cli {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class RunFilesTest : public testing::Test {
 protected:
  RunFilesTest() : top_(testing::TempDir() + "hutch_out_" + std::to_string(::getpid())) {
    fs::create_directories(top_);
    files_.emplace(RunFiles::open(out()).value());
  }
  ~RunFilesTest() override { fs::remove_all(top_); }

  std::string out() const { return top_ + "/a/out"; }
  static std::string text(const std::string& path) {
    return sys::read_file(path, 1000).value_or("missing");
  }
  void put(const std::string& path, const std::string& bytes) const {
    ASSERT_TRUE(sys::write_file_atomic(path, bytes, 0644));
  }
  std::string refusal(std::string_view path) {
    const Status status = files_->write(path, "hostile");
    EXPECT_FALSE(status) << path;
    return status ? "" : status.error().message;
  }
  // Everything below the directory of the test, whatever it is.
  std::vector<std::string> everything() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(top_)) {
      found.push_back(entry.path().string().substr(top_.size() + 1));
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  std::string top_;
  std::optional<RunFiles> files_;
};

TEST_F(RunFilesTest, WritesFilesAndWhatIsMissingAboveThem) {
  ASSERT_TRUE(files_->write("plain.txt", "one"));
  ASSERT_TRUE(files_->write("deep/er/data.bin", std::string(3, '\0')));
  ASSERT_TRUE(files_->write("./deep//x", ""));
  EXPECT_EQ(text(out() + "/plain.txt"), "one");
  EXPECT_EQ(text(out() + "/deep/er/data.bin"), std::string(3, '\0'));
  EXPECT_EQ(files_->count(), 3U);
  EXPECT_EQ(files_->bytes(), 6U);
  EXPECT_THAT(everything(),
              ElementsAre("a", "a/out", "a/out/deep", "a/out/deep/er", "a/out/deep/er/data.bin",
                          "a/out/deep/x", "a/out/plain.txt"));
}

TEST_F(RunFilesTest, NeverLeavesItsDirectory) {
  for (const char* path : {"../x", "/etc/hutch-x", "a/../../x", "..", "a/..", ""}) {
    EXPECT_THAT(refusal(path), HasSubstr("was not written")) << path;
  }
  EXPECT_THAT(refusal(std::string_view("a\0b", 3)), HasSubstr("was not written"));
  EXPECT_THAT(refusal(std::string(300, 'x')), HasSubstr("was not written"));
  std::string deep;
  for (int i = 0; i < 3000; ++i) deep += "d/";
  EXPECT_THAT(refusal(deep + "x"), HasSubstr("was not written"));
  EXPECT_THAT(everything(), ElementsAre("a", "a/out"));
}

TEST_F(RunFilesTest, FollowsNoLinkBelowItsDirectory) {
  fs::create_directories(top_ + "/elsewhere");
  put(top_ + "/elsewhere/kept", "kept");
  fs::create_directory_symlink(top_ + "/elsewhere", out() + "/link");
  EXPECT_THAT(refusal("link/kept"), HasSubstr("link is there already, and is no directory"));
  EXPECT_THAT(refusal("link/new/x"), HasSubstr("link is there already"));
  EXPECT_EQ(text(top_ + "/elsewhere/kept"), "kept");
  EXPECT_EQ(std::distance(fs::directory_iterator(top_ + "/elsewhere"), fs::directory_iterator()),
            1);
}

TEST_F(RunFilesTest, ReplacesALinkAndNotWhatItPointsAt) {
  put(top_ + "/kept", "kept");
  fs::create_symlink(top_ + "/kept", out() + "/name");
  fs::create_symlink(top_ + "/nowhere", out() + "/dangling");
  ASSERT_TRUE(files_->write("name", "new"));
  ASSERT_TRUE(files_->write("dangling", "new"));
  EXPECT_EQ(text(top_ + "/kept"), "kept");
  EXPECT_FALSE(fs::is_symlink(out() + "/name"));
  EXPECT_EQ(text(out() + "/name"), "new");
  EXPECT_FALSE(fs::exists(top_ + "/nowhere"));
}

TEST_F(RunFilesTest, WritesIntoNoPipeAndNoOtherNameOfTheSameFile) {
  ASSERT_EQ(::mkfifo((out() + "/pipe").c_str(), 0600), 0);
  ASSERT_TRUE(files_->write("pipe", "new"));
  EXPECT_EQ(text(out() + "/pipe"), "new");
  put(top_ + "/kept", "kept");
  fs::create_hard_link(top_ + "/kept", out() + "/second-name");
  ASSERT_TRUE(files_->write("second-name", "new"));
  EXPECT_EQ(text(top_ + "/kept"), "kept");
}

TEST_F(RunFilesTest, AReaderOfTheOldFileKeepsIt) {
  ASSERT_TRUE(files_->write("x", "old"));
  const Fd reader = sys::open(out() + "/x", O_RDONLY).value();
  ASSERT_TRUE(files_->write("x", "new"));
  char old[4]{};
  EXPECT_EQ(::read(reader.get(), old, 3), 3);
  EXPECT_STREQ(old, "old");
  EXPECT_EQ(text(out() + "/x"), "new");
}

TEST_F(RunFilesTest, WhatIsInTheWayIsNamed) {
  fs::create_directories(out() + "/x");
  put(out() + "/file", "kept");
  EXPECT_THAT(refusal("x"), HasSubstr("cannot write x in"));
  EXPECT_THAT(refusal("file/y"), HasSubstr("file is there already, and is no directory"));
  EXPECT_EQ(text(out() + "/file"), "kept");
  EXPECT_THAT(everything(), ElementsAre("a", "a/out", "a/out/file", "a/out/x"));
}

TEST_F(RunFilesTest, NamesAreShownWithoutTheirControlBytes) {
  fs::create_directories(out() + "/\x1b[2J");
  EXPECT_THAT(refusal("\x1b[2J"), HasSubstr("cannot write \\x1b[2J in"));
  EXPECT_THAT(refusal("../\x1b[2J\n"), Not(HasSubstr("\x1b")));
  EXPECT_THAT(refusal("../\x1b[2J\n"), Not(HasSubstr("\n")));
}

TEST_F(RunFilesTest, ItsOwnDirectoryMayBeReachedThroughALink) {
  fs::create_directory_symlink(out(), top_ + "/way");
  RunFiles files = RunFiles::open(top_ + "/way").value();
  ASSERT_TRUE(files.write("x", "1"));
  EXPECT_EQ(text(out() + "/x"), "1");
}

TEST_F(RunFilesTest, APlaceThatIsNoDirectoryIsRefused) {
  put(top_ + "/file", "kept");
  EXPECT_FALSE(RunFiles::open(top_ + "/file"));
  EXPECT_FALSE(RunFiles::open(top_ + "/file/below"));
}

}  // namespace
}  // namespace hutch::cli
