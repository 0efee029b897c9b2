#include "plan/subordinate_ids.h"

#include <gtest/gtest.h>

namespace hutch::plan {
namespace {

TEST(SubordinateIds, AreThoseOfTheUserByNameOrNumber) {
  const auto ranges = parse_subordinate_ids(
      "bob:100000:65536\nann:165536:65536\n1007:300000:10\nanna:1:1\n", "ann", 1007);
  const std::vector<IdRange> expected{{165536, 65536}, {300000, 10}};
  EXPECT_EQ(ranges, expected);
}

TEST(SubordinateIds, OfLinesThatMakeNoSenseAreNone) {
  EXPECT_TRUE(parse_subordinate_ids(
                  "ann\nann:\nann:1\nann:x:5\nann:1:\nann:1:2:3\nann:-1:5\n\n:1:2", "ann", 7)
                  .empty());
  EXPECT_TRUE(parse_subordinate_ids("", "ann", 7).empty());
}

TEST(SubordinateIds, HaveToBeInOnePiece) {
  EXPECT_FALSE(enough_ids({{100, 10}, {200, 10}}, 20));
  EXPECT_EQ(enough_ids({{100, 10}, {200, 30}, {300, 40}}, 20), (IdRange{200, 20}));
}

TEST(SubordinateIds, NeverHoldTheHostsRoot) { EXPECT_FALSE(enough_ids({{0, 65536}}, 65536)); }

TEST(SubordinateIds, ThatSomebodyElseHasAreNamed) {
  const std::string passwd = "root:x:0:0::/:\nbob::100500:5::/:\nbroken\nann:x:1000:1000::/:\n";
  EXPECT_EQ(find_clash({100'000, 65'536}, "ann", passwd, ""), "the account bob");
  EXPECT_EQ(find_clash({0, 1000}, "ann", passwd, ""), "") << "root is in nobody's range";
  EXPECT_EQ(find_clash({200'000, 65'536}, "ann", passwd, "ann:200000:65536\neve:265535:1\n"),
            "eve");
  EXPECT_EQ(find_clash({200'000, 65'536}, "ann", passwd, "ann:200000:65536\neve:265536:1\n"), "");
  EXPECT_EQ(find_clash({4'294'900'000, 67'296}, "ann", "", "eve:4294960000:67296\n"), "eve");
}

TEST(SubordinateIds, InUseAreThoseOfAccountsAndLinesButNotRoots) {
  const std::vector<IdRange> expected{{7, 1}, {100, 5}};
  EXPECT_EQ(ids_in_use("root:x:0:0::/:\nann:x:7:7::/:\n", "ann:100:5\nbroken\n"), expected);
}

TEST(SubordinateIds, GoBehindTheOnesThatAreGivenAway) {
  EXPECT_EQ(find_free_start({"", ""}, 65'536), 100'000U);
  EXPECT_EQ(find_free_start({"bob:165536:65536\n", "ann:100000:65536\n"}, 65'536), 231'072U);
  EXPECT_EQ(find_free_start({"bob:90000:20000\neve:400000:1\n"}, 65'536), 110'000U);
}

}  // namespace
}  // namespace hutch::plan
