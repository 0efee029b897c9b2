#include "model/files.h"

#include <gtest/gtest.h>

#include <string>

namespace hutch::model {
namespace {

std::string repeat(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(PathProblem, RefusesEveryWayOut) {
  const std::string paths[] = {"../x",
                               "/etc/x",
                               "a/../../x",
                               "./../x",
                               "a//..//../x",
                               "..",
                               "/",
                               repeat("../", 40) + "tmp/x",
                               "a/./../../x",
                               "....//x/../../..",
                               "/proc/self/environ",
                               "~/../x",
                               "a/..",
                               "a/../b",
                               "../etc/passwd"};
  for (const auto& path : paths) {
    EXPECT_EQ(path_problem(path), "file path escapes working directory: '" + path + "'");
  }
}

TEST(PathProblem, GivesOtherUnusablePathsTheirOwnSentence) {
  EXPECT_EQ(path_problem(""), "file path is empty");
  EXPECT_EQ(path_problem("."), "file path names a directory: '.'");
  EXPECT_EQ(path_problem("a/"), "file path names a directory: 'a/'");
  EXPECT_EQ(path_problem("a/."), "file path names a directory: 'a/.'");
  EXPECT_EQ(path_problem(std::string_view("x\0y", 3)), "file path contains a NUL byte: 'x\\x00y'");
  EXPECT_EQ(path_problem(repeat("a/", 3000) + "x"), "file path is longer than 4096 bytes");
  const std::string long_name(300, 'n');
  EXPECT_EQ(path_problem(long_name),
            "file path has a component longer than 255 bytes: '" + long_name + "'");
  EXPECT_EQ(path_problem(repeat("a/", 64) + "x"),
            "file path has more than 64 components: '" + repeat("a/", 64) + "x'");
  EXPECT_EQ(path_problem("a\xff"), "file path is not valid UTF-8");
}

TEST(PathProblem, AcceptsWhatStaysInside) {
  for (const std::string path : {"a/b/c.txt", "a/./b.txt", "ünï/ç.txt", "sp ace.txt", "..hidden",
                                 "a..b", "...", "~", "a//b", "-rf", "data/input.csv"}) {
    EXPECT_EQ(path_problem(path), std::nullopt) << path;
  }
  EXPECT_EQ(path_problem(std::string(255, 'n')), std::nullopt);
  EXPECT_EQ(path_problem(repeat("a/", 63) + "x"), std::nullopt);
}

TEST(NormalizedPath, DropsDotsAndSlashes) {
  EXPECT_EQ(normalized_path("a/./b.txt"), "a/b.txt");
  EXPECT_EQ(normalized_path(".//a///b"), "a/b");
  EXPECT_EQ(normalized_path("..hidden"), "..hidden");
}

TEST(CollisionProblem, NamesTheTwoPaths) {
  EXPECT_EQ(collision_problem({{"a", ""}, {"a/b", ""}}),
            "file path 'a' is a directory of file path 'a/b'");
  EXPECT_EQ(collision_problem({{"d/x", ""}, {"d", ""}}),
            "file path 'd' is a directory of file path 'd/x'");
  EXPECT_EQ(collision_problem({{"a/b/c/d", ""}, {"./a//b", ""}}),
            "file path './a//b' is a directory of file path 'a/b/c/d'");
  EXPECT_EQ(collision_problem({{"a", ""}, {"./a", ""}}),
            "file paths 'a' and './a' name the same file");
  EXPECT_EQ(collision_problem({{"a/b", ""}, {"a/c", ""}, {"ab", ""}, {"b", ""}}), std::nullopt);
  EXPECT_EQ(collision_problem({{"a-b", ""}, {"a/b", ""}, {"a!", ""}, {"a.b/c", ""}, {"a b", ""}}),
            std::nullopt);
  EXPECT_EQ(collision_problem({{"a-b", ""}, {"a/b", ""}, {"a!", ""}, {"a", ""}, {"a b", ""}}),
            "file path 'a' is a directory of file path 'a/b'");
  EXPECT_EQ(collision_problem({}), std::nullopt);
}

TEST(MimeType, GoesByTheEndingThenByTheBytes) {
  EXPECT_EQ(mime_type("chart.png", ""), "image/png");
  EXPECT_EQ(mime_type("a/B.CSV", ""), "text/csv");
  EXPECT_EQ(mime_type("x.tar.gz", ""), "application/gzip");
  EXPECT_EQ(mime_type("book.xlsx", ""),
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet");
  EXPECT_EQ(mime_type("notes", "grüße\n"), "text/plain");
  EXPECT_EQ(mime_type("notes.unknown", "plain"), "text/plain");
  EXPECT_EQ(mime_type("a.png/data", "plain"), "text/plain");
  EXPECT_EQ(mime_type(".png", "plain"), "text/plain");
  EXPECT_EQ(mime_type("data", std::string_view("\0\1", 2)), "application/octet-stream");
  EXPECT_EQ(mime_type("data", "\xff\xfe"), "application/octet-stream");
  EXPECT_EQ(mime_type("empty", ""), "text/plain");
}

TEST(OmitReason, HasTheNamesOfTheAnswers) {
  EXPECT_EQ(omit_reason_name(OmitReason::too_large), "too_large");
  EXPECT_EQ(omit_reason_name(OmitReason::not_regular), "not_regular");
}

}  // namespace
}  // namespace hutch::model
