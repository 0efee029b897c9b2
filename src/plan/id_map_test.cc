#include "plan/id_map.h"

#include <gtest/gtest.h>

namespace hutch::plan {
namespace {

TEST(IdMap, OfTheHostIsWhole) {
  EXPECT_TRUE(maps_every_id(parse_id_map("         0          0 4294967295\n")));
  EXPECT_FALSE(maps_every_id(parse_id_map("0 0 65536\n")));
  EXPECT_FALSE(maps_every_id(parse_id_map("0 1000 4294967295\n")));
  EXPECT_FALSE(maps_every_id(parse_id_map("")));
}

TEST(IdMap, OfAnOrdinaryUserTellsWhoIsWhoOutside) {
  const auto map = parse_id_map("0 1001 1\n1 165536 65536\n");
  ASSERT_EQ(map.size(), 2U);
  EXPECT_EQ(id_outside(map, 0), 1001U);
  EXPECT_EQ(id_outside(map, 1), 165536U);
  EXPECT_EQ(id_outside(map, 65536), 231071U);
  EXPECT_EQ(id_outside(map, 65537), 65537U);
}

TEST(IdMap, EndsWhereALineIsNone) {
  EXPECT_EQ(parse_id_map("0 0 1\nnonsense\n1 1 1\n").size(), 1U);
}

}  // namespace
}  // namespace hutch::plan
