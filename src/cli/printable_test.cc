#include "cli/printable.h"

#include <gtest/gtest.h>

namespace hutch::cli {
namespace {

TEST(Printable, LeavesTextAlone) {
  for (const char* text :
       {"", "report.csv", "dir/a b", "größe", "数据", "🦔", "it's \"x\" \\ y"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(printable("a\x1b[2Jb"), "a\\x1b[2Jb");
  EXPECT_EQ(printable("a\r\nb\tc\x7f"), "a\\x0d\\x0ab\\x09c\\x7f");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m");
}

TEST(Printable, ShowsWhatWouldDeceiveItsReader) {
  EXPECT_EQ(printable("invoice\xe2\x80\xaegnp.exe"), "invoice\\xe2\\x80\\xaegnp.exe");
  EXPECT_EQ(printable("a\xe2\x81\xa6"
                      "b\xe2\x80\x8b\xef\xbb\xbf"),
            "a\\xe2\\x81\\xa6b\\xe2\\x80\\x8b\\xef\\xbb\\xbf");
}

TEST(Printable, ShowsBytesThatAreNoText) {
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(printable("a\xc3"), "a\\xc3");
  EXPECT_EQ(printable("\xe2\x28\xa1"), "\\xe2(\\xa1");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");
}

TEST(Printable, IsBounded) {
  EXPECT_EQ(printable(std::string(5000, 'x'), 10), "xxxxxxxxxx...");
  EXPECT_LT(printable(std::string(5000, '\n')).size(), 1100U);
}

}  // namespace
}  // namespace hutch::cli
