#include "base/utf8.h"

#include <gtest/gtest.h>

namespace hutch::utf8 {
namespace {

constexpr const char* kMark = "\xEF\xBF\xBD";

std::string marks(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += kMark;
  return text;
}

TEST(Utf8, LeavesValidTextAlone) {
  const std::string text = "plain, \xC3\xA9t\xC3\xA9, \xE4\xBD\xA0, \xF0\x9F\xA6\x8A";
  EXPECT_EQ(replace_invalid(text), text);
  EXPECT_EQ(replace_invalid(""), "");
  const std::string with_nul("a\0b", 3);
  EXPECT_EQ(replace_invalid(with_nul), with_nul);
}

TEST(Utf8, MarksEachIllFormedSequenceOnce) {
  EXPECT_EQ(replace_invalid("\xFF"), marks(1));
  EXPECT_EQ(replace_invalid("\xFF\xFE"), marks(2));
  EXPECT_EQ(replace_invalid("a\x80z"), "a" + marks(1) + "z");
  EXPECT_EQ(replace_invalid("a\xE4\xBDz"), "a" + marks(1) + "z");
  EXPECT_EQ(replace_invalid("end\xF0\x9F\xA6"), "end" + marks(1));
  EXPECT_EQ(replace_invalid("\xED\xA0\x80"), marks(1)) << "a surrogate is no character";
  EXPECT_EQ(replace_invalid("\xC0\xAF"), marks(1)) << "an overlong slash";
}

TEST(Utf8, AlwaysYieldsValidText) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const char bytes[] = {static_cast<char>(first), static_cast<char>(second), 'x', '\xF4',
                            '\x90'};
      EXPECT_TRUE(is_valid(replace_invalid({bytes, sizeof bytes})));
      EXPECT_TRUE(is_valid(replace_invalid({bytes, 2})));
    }
  }
}

TEST(Utf8, SeesACharacterThatIsCutInTwo) {
  const std::string fox = "\xF0\x9F\xA6\x8A";
  for (std::size_t kept = 1; kept < 4; ++kept) {
    EXPECT_EQ(unfinished_suffix("ab" + fox.substr(0, kept)), kept);
    EXPECT_EQ(orphaned_prefix(fox.substr(kept) + "ab"), 4 - kept);
  }
  EXPECT_EQ(unfinished_suffix("ab" + fox), 0U);
  EXPECT_EQ(orphaned_prefix(fox), 0U);
  EXPECT_EQ(unfinished_suffix(""), 0U);
  EXPECT_EQ(orphaned_prefix(""), 0U);
  EXPECT_EQ(unfinished_suffix("\xFF"), 0U) << "never becomes a character, so it is not cut";
  EXPECT_EQ(orphaned_prefix("\x80\x80\x80\x80\x80"), 3U);
}

TEST(Utf8, PrefixEndsBetweenCharacters) {
  const std::string text = "a\xE4\xBD\xA0z";
  EXPECT_EQ(prefix(text, 10), text);
  EXPECT_EQ(prefix(text, 4), "a\xE4\xBD\xA0");
  EXPECT_EQ(prefix(text, 3), "a");
  EXPECT_EQ(prefix(text, 0), "");
}

}  // namespace
}  // namespace hutch::utf8
