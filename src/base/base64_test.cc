#include "base/base64.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace hutch::base64 {
namespace {

TEST(Base64, EncodesTheVectorsOfTheStandard) {
  EXPECT_EQ(encode(""), "");
  EXPECT_EQ(encode("f"), "Zg==");
  EXPECT_EQ(encode("fo"), "Zm8=");
  EXPECT_EQ(encode("foobar"), "Zm9vYmFy");
  EXPECT_EQ(encode(std::string_view("\x00\xff\xfb", 3)), "AP/7");
}

TEST(Base64, AppendsBehindWhatIsThere) {
  std::string out = "\"";
  append(out, "foo");
  out += '"';
  EXPECT_EQ(out, "\"Zm9v\"");
}

TEST(Base64, RefusesEverythingThatEncodeWouldNotWrite) {
  for (const char* text : {"QQ", "QQ=", "QQ===", "Q", "!!!", "!!!!", "Q Q=", "QQ==\n",
                           "\nQQ==", "QR==", "QQ==QQ==", "=QQ=", "====", "ab-_", "Zm9v\r\nZm9v"}) {
    EXPECT_FALSE(decode(text)) << text;
  }
  EXPECT_FALSE(decode(std::string_view("QQ=\0", 4)));
}

TEST(Base64, BringsAnyBytesBack) {
  SeededRandom random(7);
  for (std::size_t size = 0; size < 200; ++size) {
    std::string bytes(size, '\0');
    random.fill({reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()});
    const auto back = decode(encode(bytes));
    ASSERT_TRUE(back);
    EXPECT_EQ(*back, bytes);
  }
}

}  // namespace
}  // namespace hutch::base64
