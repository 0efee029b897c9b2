#include "cli/run_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/sys.h"

namespace hutch::cli {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class RunInputsTest : public testing::Test {
 protected:
  RunInputsTest() : before_(fs::current_path()) {
    top_ = testing::TempDir() + "hutch_in_" + std::to_string(::getpid());
    fs::create_directories(top_ + "/dir/sub");
    fs::current_path(top_);
    put("data.csv", "1,2");
    put("with:colon", "c");
    put("dir/b", "b");
    put("dir/a", "a");
    put("dir/sub/c", "cc");
  }
  ~RunInputsTest() override {
    fs::current_path(before_);
    fs::remove_all(top_);
  }

  void put(const std::string& path, const std::string& bytes) {
    ASSERT_TRUE(sys::write_file_atomic(path, bytes, 0644));
  }
  // "name=bytes" of what would be sent.
  std::vector<std::string> sent(const std::vector<std::string>& arguments) {
    const auto inputs = read_inputs(arguments, limits_);
    if (!inputs) return {"error: " + inputs.error().message};
    std::vector<std::string> list;
    for (const auto& file : inputs->files) list.push_back(file.path + "=" + file.bytes);
    return list;
  }
  std::string refusal(const std::vector<std::string>& arguments) {
    const auto inputs = read_inputs(arguments, limits_);
    if (inputs) return "it was taken";
    EXPECT_EQ(inputs.error().code, ErrorCode::config);
    return describe(inputs.error());
  }

  RunInputLimits limits_;
  fs::path before_;
  std::string top_;
};

TEST_F(RunInputsTest, AFileGoesUnderItsOwnNameOrAnother) {
  EXPECT_THAT(sent({"data.csv"}), ElementsAre("data.csv=1,2"));
  EXPECT_THAT(sent({top_ + "/data.csv"}), ElementsAre("data.csv=1,2"));
  EXPECT_THAT(sent({"data.csv:in/x.csv"}), ElementsAre("in/x.csv=1,2"));
  EXPECT_THAT(sent({"data.csv", "data.csv:again"}), ElementsAre("data.csv=1,2", "again=1,2"));
}

TEST_F(RunInputsTest, TheLastColonPartsUnlessTheWholeIsThere) {
  EXPECT_THAT(sent({"with:colon"}), ElementsAre("with:colon=c"));
  EXPECT_THAT(sent({"with:colon:x"}), ElementsAre("x=c"));
}

TEST_F(RunInputsTest, ADirectoryIsEveryFileBelowIt) {
  EXPECT_THAT(sent({"dir"}), ElementsAre("dir/a=a", "dir/b=b", "dir/sub/c=cc"));
  EXPECT_THAT(sent({"./dir/"}), ElementsAre("dir/a=a", "dir/b=b", "dir/sub/c=cc"));
  EXPECT_THAT(sent({"dir:."}), ElementsAre("a=a", "b=b", "sub/c=cc"));
  EXPECT_THAT(sent({"dir:x/y"}), ElementsAre("x/y/a=a", "x/y/b=b", "x/y/sub/c=cc"));
  fs::current_path(top_ + "/dir");
  EXPECT_THAT(sent({"."}), ElementsAre("a=a", "b=b", "sub/c=cc"));
}

TEST_F(RunInputsTest, LinksAreFollowedOnlyWhereTheyWereNamed) {
  fs::create_symlink("/etc/passwd", "dir/link");
  fs::create_directory_symlink("dir", "other");
  ASSERT_EQ(::mkfifo("dir/pipe", 0600), 0);
  EXPECT_THAT(sent({"other"}), ElementsAre("other/a=a", "other/b=b", "other/sub/c=cc"));
  EXPECT_THAT(read_inputs({"dir"}, limits_)->skipped, ElementsAre("dir/link", "dir/pipe"));
}

TEST_F(RunInputsTest, WhatCannotBeSentIsNamed) {
  EXPECT_THAT(refusal({"missing"}), HasSubstr("--in missing: it cannot be read: No such file"));
  EXPECT_THAT(refusal({"data.csv:"}), HasSubstr("NAME behind the colon is empty"));
  EXPECT_THAT(refusal({""}), HasSubstr("PATH or PATH:NAME"));
  EXPECT_THAT(refusal({":x"}), HasSubstr("PATH or PATH:NAME"));
  EXPECT_THAT(refusal({"/dev/null"}), HasSubstr("neither a regular file nor a directory"));
  EXPECT_THAT(refusal({"data.csv:../x"}), HasSubstr("escapes working directory"));
  EXPECT_THAT(refusal({"data.csv:/x"}), HasSubstr("escapes working directory"));
  EXPECT_THAT(refusal({"dir/.."}), HasSubstr("no name of its own"));
  EXPECT_THAT(refusal({"/"}), HasSubstr("no name of its own"));
  EXPECT_THAT(refusal({"data.csv", "dir/a:data.csv"}), HasSubstr("another NAME"));
  put("dir/\xff", "x");
  EXPECT_THAT(refusal({"dir"}), HasSubstr("dir/\\xff is not UTF-8"));
}

TEST_F(RunInputsTest, CountAndSizeAreBounded) {
  limits_.files = 3;
  EXPECT_EQ(sent({"dir"}).size(), 3U);
  EXPECT_THAT(refusal({"dir", "data.csv"}), HasSubstr("more than 3 files"));
  limits_ = {.bytes = 4};
  EXPECT_EQ(sent({"dir"}).size(), 3U);
  EXPECT_THAT(refusal({"dir", "data.csv"}), HasSubstr("all files together are larger than"));
}

}  // namespace
}  // namespace hutch::cli
