#include "engine/live_output.h"

#include <gtest/gtest.h>

namespace hutch::engine {
namespace {

using enum OutputStream;

std::string all_of(LiveOutput& live) {
  std::string text;
  while (const auto piece = live.take()) {
    text += (piece->stream == out ? "o:" : "e:") + piece->bytes + " ";
  }
  return text;
}

TEST(LiveOutput, KeepsTheOrderAndJoinsNeighbours) {
  LiveOutput live;
  live.add(out, "a");
  live.add(out, "b");
  live.add(err, "c");
  live.add(out, "d");
  live.add(err, "");
  EXPECT_EQ(all_of(live), "o:ab e:c o:d ");
  EXPECT_EQ(live.held_bytes(), 0U);
  live.add(out, "e");
  EXPECT_EQ(all_of(live), "o:e ");
}

TEST(LiveOutput, JoinsNoMoreThanOnePortion) {
  LiveOutput live;
  live.add(out, std::string(65'536, 'a'));
  live.add(out, "b");
  EXPECT_EQ(live.take()->bytes.size(), 65'536U);
  EXPECT_EQ(live.take()->bytes, "b");
}

TEST(LiveOutput, IsFullOfOneStreamAlone) {
  LiveOutput live(1000);
  live.add(out, std::string(999 - 64, 'a'));
  EXPECT_FALSE(live.full(out));
  live.add(out, "b");
  EXPECT_TRUE(live.full(out));
  EXPECT_FALSE(live.full(err));
  live.add(out, std::string(5000, 'c'));
  EXPECT_EQ(live.held_bytes(), 6000U) << "what is there is taken all the same";
}

TEST(LiveOutput, SmallPiecesCountWithWhatTheyCost) {
  LiveOutput live(1000);
  int pieces = 0;
  for (; !live.full(out); ++pieces) {
    live.add(out, "a");
    live.add(err, "b");
  }
  EXPECT_LT(pieces, 20);
  EXPECT_TRUE(live.full(err));
}

TEST(LiveOutput, TellsOnceThatThereIsRoom) {
  LiveOutput live(100);
  int told = 0;
  live.add(out, std::string(50'000, 'a'));
  live.add(out, std::string(50'000, 'b'));
  live.add(err, "c");
  live.when_room(out, [&] {
    EXPECT_FALSE(live.full(out));
    ++told;
  });
  live.take();
  EXPECT_EQ(told, 0) << "still full";
  live.take();
  EXPECT_EQ(told, 1);
  live.add(out, "d");
  EXPECT_EQ(all_of(live), "e:c o:d ");
  EXPECT_EQ(told, 1);
}

TEST(LiveOutput, TellsOfEachChange) {
  LiveOutput live;
  int changes = 0;
  live.on_change([&] { ++changes; });
  EXPECT_FALSE(live.begun());
  live.begin();
  live.begin();
  EXPECT_TRUE(live.begun());
  EXPECT_EQ(changes, 1);
  live.add(out, "a");
  live.add(out, "b");
  EXPECT_EQ(changes, 3);
  live.take();
  live.on_change({});
  live.add(out, "c");
  EXPECT_EQ(changes, 3);
}

}  // namespace
}  // namespace hutch::engine
