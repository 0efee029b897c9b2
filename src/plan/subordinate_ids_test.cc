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

}  // namespace
}  // namespace hutch::plan
