#include "http/accept.h"

#include <gtest/gtest.h>

namespace hutch::http {
namespace {

bool wants_stream(std::vector<std::string> accept) {
  std::vector<Field> fields{{"Host", "text/event-stream"}};
  for (std::string& value : accept) fields.push_back({"accept", std::move(value)});
  return prefers(fields, "text/event-stream", "application/json");
}

TEST(Accept, WhoNamesTheTypeGetsIt) {
  EXPECT_TRUE(wants_stream({"text/event-stream"}));
  EXPECT_TRUE(wants_stream({"Text/Event-Stream;charset=utf-8"}));
  EXPECT_TRUE(wants_stream({"  text/event-stream ; q=0.001 ,*/*"}));
  EXPECT_TRUE(wants_stream({"*/*", "text/event-stream"}));
  EXPECT_TRUE(wants_stream({"text/html,,text/event-stream"}));
}

TEST(Accept, NobodyElseDoes) {
  EXPECT_FALSE(wants_stream({}));
  EXPECT_FALSE(wants_stream({""}));
  EXPECT_FALSE(wants_stream({"*/*"}));
  EXPECT_FALSE(wants_stream({"text/*"}));
  EXPECT_FALSE(wants_stream({"application/json"}));
  EXPECT_FALSE(wants_stream({"text/event-streams"}));
  EXPECT_FALSE(wants_stream({"text/event-stream;q=0"}));
  EXPECT_FALSE(wants_stream({"text/event-stream;q=0.000"}));
}

TEST(Accept, TheLargerWeightWinsAndThenTheFirst) {
  EXPECT_TRUE(wants_stream({"application/json;q=0.5, text/event-stream;q=0.6"}));
  EXPECT_FALSE(wants_stream({"text/event-stream;q=0.5, application/json;q=0.6"}));
  EXPECT_TRUE(wants_stream({"text/event-stream, application/json"}));
  EXPECT_FALSE(wants_stream({"application/json, text/event-stream"}));
  EXPECT_FALSE(wants_stream({"application/json", "text/event-stream"}));
  EXPECT_TRUE(wants_stream({"application/json;q=0, text/event-stream;q=0.1"}));
}

TEST(Accept, WhatCannotBeReadAsksForNothing) {
  for (const char* weight : {"", "2", "1.5", "-1", "0.1234", "x", "0.x", "00", ".5"}) {
    EXPECT_FALSE(wants_stream({std::string("text/event-stream;q=") + weight})) << weight;
  }
  EXPECT_FALSE(wants_stream({";", ",", "=", ";;q=1"}));
}

}  // namespace
}  // namespace hutch::http
