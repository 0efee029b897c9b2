#include "base/json.h"

#include <gtest/gtest.h>

#include <string>

namespace hutch::json {
namespace {

using namespace std::string_literals;

TEST(Json, TakesWhatTheStandardAllows) {
  const auto value = parse(R"( {"a": [1, -2.5, true, null, "\u00e9\ud83e\udd8a\/"], "b": {}} )");
  ASSERT_TRUE(value);
  const auto& object = value->as_object();
  EXPECT_EQ(object.at("a").as_array().size(), 5U);
  EXPECT_EQ(object.at("a").as_array().at(4).as_string(), "\xC3\xA9\xF0\x9F\xA6\x8A/");
}

TEST(Json, KeepsANulInsideAString) {
  const auto value = parse(R"({"code":"a\u0000b"})");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->as_object().at("code").as_string().size(), 3U);
}

TEST(Json, TellsNumbersApartByHowTheyAreWritten) {
  EXPECT_TRUE(parse("5")->is_int64());
  EXPECT_TRUE(parse("-0")->is_int64());
  EXPECT_TRUE(parse("18446744073709551615")->is_uint64());
  EXPECT_TRUE(parse("18446744073709551617")->is_double());
  EXPECT_TRUE(parse("5.0")->is_double());
}

TEST(Json, RefusesWhatTwoReadersCouldReadDifferently) {
  for (const std::string& text : {""s,
                                  " "s,
                                  "{"s,
                                  "[1,]"s,
                                  "{\"a\":1,}"s,
                                  "nul"s,
                                  "NaN"s,
                                  "Infinity"s,
                                  "-Infinity"s,
                                  "[NaN]"s,
                                  "1e999"s,
                                  "-1e999"s,
                                  "01"s,
                                  "+1"s,
                                  ".5"s,
                                  "'a'"s,
                                  "{a:1}"s,
                                  "1 2"s,
                                  "{\"a\":1}x"s,
                                  "{\"a\":1}{}"s,
                                  "{\"a\":1}\0"s,
                                  "{\"a\":1/**/}"s,
                                  "//\n1"s,
                                  "\xEF\xBB\xBF{}"s,
                                  "\"\xFF\xFE\""s,
                                  "\"\xC0\xAF\""s,
                                  "\"\xED\xA0\x80\""s,
                                  "\"a\nb\""s,
                                  "\"a\0b\""s,
                                  R"("\ud800")"s,
                                  R"("\udc00")"s,
                                  R"("\ud800\u0041")"s,
                                  R"("\x41")"s}) {
    EXPECT_FALSE(parse(text)) << text;
  }
}

TEST(Json, RefusesAKeyThatComesTwice) {
  EXPECT_FALSE(parse(R"({"a":1,"a":1})"));
  EXPECT_FALSE(parse(R"({"a":1,"b":2,"\u0061":3})")) << "however it is written";
  EXPECT_FALSE(parse(R"({"x":[{"a":1,"b":{"c":1,"d":2,"c":3}}]})"));
  EXPECT_TRUE(parse(R"({"a":{"a":{"a":1},"b":1},"b":[{"a":1},{"a":1}]})"));
  EXPECT_FALSE(parse(R"({"":1,"":2})"));
}

TEST(Json, RefusesMoreThanSixtyFourLevels) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(parse(nested(kDepthMax)));
  EXPECT_FALSE(parse(nested(kDepthMax + 1)));
  EXPECT_FALSE(parse(std::string(200'000, '[')));
}

TEST(Json, RefusesMoreValuesThanItWantsToHold) {
  std::string text = "[0";
  for (std::size_t i = 2; i < kValuesMax; ++i) text += ",0";
  EXPECT_TRUE(parse(text + "]"));
  EXPECT_FALSE(parse(text + ",0]"));
}

TEST(Json, WritesInOrderWithCommasWhereTheyBelong) {
  Writer writer;
  writer.begin_object().key("a").integer(-1).key("b").begin_array();
  writer.string("x").unsigned_integer(18446744073709551615U).boolean(true);
  writer.begin_object().end_object().begin_array().end_array().end_array();
  writer.key("c").base64("foo").end_object();
  EXPECT_EQ(writer.take(), R"({"a":-1,"b":["x",18446744073709551615,true,{},[]],"c":"Zm9v"})");
}

TEST(Json, EscapesWhatMustNotStandInAString) {
  std::string out;
  append_string(out, "q\" b\\ \b\f\n\r\t \x01\x1B[2J\x7F \xC3\xA9\0!"s);
  EXPECT_EQ(out, R"("q\" b\\ \b\f\n\r\t \u0001\u001b[2J\u007f )"
                 "\xC3\xA9"
                 R"(\u0000!")");
}

TEST(Json, NeverLetsABrokenCharacterOut) {
  std::string out;
  append_string(out, "a\xFF\xE4\xBD");
  EXPECT_EQ(out, "\"a\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(Json, ReadsBackWhatItWrote) {
  std::string text;
  for (int c = 0; c < 0x80; ++c) text += static_cast<char>(c);
  std::string out;
  append_string(out, text);
  const auto value = parse(out);
  ASSERT_TRUE(value);
  EXPECT_EQ(std::string_view(value->as_string()), text);
}

}  // namespace
}  // namespace hutch::json
