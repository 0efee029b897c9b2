#include "engine/courier_reply.h"

#include <gtest/gtest.h>

#include <random>

#include "engine/piece_writer.h"

namespace hutch::engine {
namespace {

using model::OmitReason;
using plan::RecordKind;

std::string record(RecordKind kind, std::uint8_t reason, const std::string& path,
                   std::uint64_t size, const std::string& data = "") {
  std::string bytes;
  bytes += static_cast<char>(kind);
  bytes += static_cast<char>(reason);
  return bytes + wire_bytes(static_cast<std::uint32_t>(path.size())) + wire_bytes(size) + path +
         data;
}

std::string file(const std::string& path, const std::string& data) {
  return record(RecordKind::file, 0, path, data.size(), data);
}
std::string omitted(const std::string& path, OmitReason reason, std::uint64_t size = 5) {
  return record(RecordKind::omitted, static_cast<std::uint8_t>(reason), path, size);
}
std::string unchanged(const std::string& path) { return record(RecordKind::unchanged, 0, path, 1); }
std::string end(std::uint64_t count = 0) { return record(RecordKind::end, 0, "", count); }

model::Limits small_limits() {
  model::Limits limits;
  limits.file_bytes = 10;
  limits.files_bytes = 25;
  limits.files_count = 3;
  limits.inodes = 100;
  return limits;
}

Result<ReturnedFiles> read(const std::string& bytes, const std::vector<model::InputFile>& sent = {},
                           std::size_t portion = 1 << 20) {
  CourierReply reply(small_limits(), sent);
  for (std::size_t at = 0; at < bytes.size(); at += portion) {
    const auto part = std::span(bytes).subspan(at, std::min(portion, bytes.size() - at));
    if (const auto fed = reply.feed(std::as_bytes(part)); !fed) return fail(fed.error());
  }
  if (!reply.complete()) return fail(ErrorCode::sandbox_lost, "not complete");
  return reply.take();
}

bool refused(const std::string& bytes, const std::vector<model::InputFile>& sent = {}) {
  const auto result = read(bytes, sent);
  return !result && result.error().code == ErrorCode::unreadable_reply;
}

TEST(CourierReply, ReadsAllRecordsInPortionsOfAnySize) {
  const std::vector<model::InputFile> sent = {{"./same", "x"}, {"changed", "y"}, {"gone", "z"}};
  const std::string bytes = file("b/new", "12345") + file("a", "") + unchanged("same") +
                            file("changed", "1234567890") + omitted("big", OmitReason::too_large) +
                            end(1);
  for (std::size_t portion = 1; portion < bytes.size(); ++portion) {
    const auto result = read(bytes, sent, portion);
    ASSERT_TRUE(result);
    ASSERT_EQ(result->files.size(), 3U);
    EXPECT_EQ(result->files[0].path, "a");
    EXPECT_EQ(result->files[1].path, "b/new");
    EXPECT_EQ(result->files[1].bytes, "12345");
    EXPECT_EQ(result->files[2].path, "changed");
    ASSERT_EQ(result->omitted.size(), 1U);
    EXPECT_EQ(result->omitted[0].reason, OmitReason::too_large);
    EXPECT_EQ(result->omitted[0].size, 5U);
    EXPECT_EQ(result->omitted_count, 1U);
    EXPECT_EQ(result->deleted, std::vector<std::string>{"gone"});
  }
}

TEST(CourierReply, HoldsEverySizeAgainstTheLimits) {
  EXPECT_TRUE(read(file("a", "1234567890") + end()));
  EXPECT_TRUE(refused(record(RecordKind::file, 0, "a", 11)));
  EXPECT_TRUE(refused(record(RecordKind::file, 0, "a", ~std::uint64_t{0})));
  const std::string ten(10, 'x');
  EXPECT_TRUE(read(file("a", ten) + file("b", ten) + file("c", "12345") + end()));
  EXPECT_TRUE(refused(file("a", ten) + file("b", ten) + file("c", "123456")));
  EXPECT_TRUE(refused(file("a", "") + file("b", "") + file("c", "") + file("d", "")));
  std::string many;
  for (const char* path : {"a", "b", "c"}) many += omitted(path, OmitReason::count);
  EXPECT_TRUE(read(many + end(100)));
  EXPECT_TRUE(refused(many + omitted("d", OmitReason::count)));
  EXPECT_TRUE(refused(many + end(2)));
  EXPECT_TRUE(refused(many + end(101)));
}

TEST(CourierReply, RefusesPathsThatLeadOut) {
  for (const std::string path :
       {"/etc/x", "..", "../x", "a/../b", "a/..", ".", "./a", "a//b", "a/", "/"}) {
    EXPECT_TRUE(refused(file(path, "x"))) << path;
  }
  EXPECT_TRUE(refused(file(std::string("a\0b", 3), "x")));
  EXPECT_TRUE(refused(file("", "x")));
  EXPECT_TRUE(refused(file("a\xff", "x")));
  EXPECT_TRUE(refused(record(RecordKind::file, 0, std::string(4097, 'a'), 0)));
  EXPECT_TRUE(refused(omitted("../x", OmitReason::name)));
  EXPECT_TRUE(refused(omitted("//", OmitReason::unreadable)));
  EXPECT_TRUE(read(file("..a/...", "x") + end()));
}

TEST(CourierReply, RefusesWhatMakesNoSense) {
  EXPECT_TRUE(refused(record(static_cast<RecordKind>(0), 0, "a", 0)));
  EXPECT_TRUE(refused(record(static_cast<RecordKind>(9), 0, "a", 0)));
  EXPECT_TRUE(refused(record(RecordKind::omitted, 6, "a", 0)));
  EXPECT_TRUE(refused(record(RecordKind::end, 0, "a", 0)));
  EXPECT_TRUE(refused(end() + "x"));
  EXPECT_TRUE(refused(unchanged("never sent")));
  EXPECT_TRUE(refused(unchanged("a") + unchanged("a"), {{"a", ""}}));
  EXPECT_FALSE(refused(file("a", "12345")));  // not complete, but nothing wrong so far
  EXPECT_FALSE(read(file("a", "12345")));
}

TEST(CourierReply, ShowsNamesThatAreNotTextEscaped) {
  const auto result = read(omitted("d/\xff\xc3\xa9\xc3", OmitReason::name) +
                           omitted("x\\y", OmitReason::not_regular) + end(2));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->omitted[0].path, "d/\\xff\xc3\xa9\\xc3");
  EXPECT_EQ(result->omitted[1].path, "x\\y");
}

TEST(CourierReply, CallsNothingDeletedThatItCannotKnow) {
  const std::vector<model::InputFile> sent = {
      {"d/a", ""}, {"d/deep/b", ""}, {"e", ""}, {"m/__pycache__/c", ""}, {"link", ""}};
  const auto result =
      read(omitted("d", OmitReason::unreadable) + omitted("link", OmitReason::not_regular) + end(2),
           sent);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->deleted, std::vector<std::string>{"e"});
  const auto counted = read(omitted("z", OmitReason::too_large) + end(2), sent);
  ASSERT_TRUE(counted);
  EXPECT_TRUE(counted->deleted.empty());
}

TEST(CourierReply, SurvivesNoise) {
  std::mt19937 noise(1);
  const std::string good =
      file("b/new", "12345") + unchanged("same") + omitted("big", OmitReason::total) + end(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = good;
    const int changes = 1 + static_cast<int>(noise() % 4);
    for (int i = 0; i < changes; ++i) bytes[noise() % bytes.size()] = static_cast<char>(noise());
    const auto result = read(bytes, {{"same", ""}}, 1 + noise() % 7);
    if (result) {
      EXPECT_LE(result->files.size(), 3U);
    }
  }
}

TEST(AllDeleted, NamesThemInOrder) {
  EXPECT_EQ(all_deleted({{"b", ""}, {"./a//c", ""}}), (std::vector<std::string>{"a/c", "b"}));
}

}  // namespace
}  // namespace hutch::engine
