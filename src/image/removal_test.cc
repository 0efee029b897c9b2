#include "image/removal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "image/lock.h"
#include "image/scratch_directory.h"
#include "image/store.h"
#include "image/tree.h"

namespace hutch::image {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kOld(64, 'a');
const std::string kNew(64, 'b');

class ImageRemoval : public ::testing::Test {
 protected:
  ImageRemoval() {
    add(kOld);
    add(kNew);
    state_.write("images/refs/tiny", kNew + "\n");
  }
  void add(const std::string& digest) const {
    state_.write("images/" + digest + ".json", "{}");
    state_.write("images/" + digest + ".erofs", std::string(10'000, 'x'));
  }
  Image image(const std::string& digest) const {
    return {.name = "tiny", .digest = digest, .path = state_.path("images/" + digest + ".erofs")};
  }

  ScratchDirectory state_;
};

TEST_F(ImageRemoval, WhatIsHeldStaysUntilTheLastHolderHasLetGo) {
  Fd first = hold_image(image(kOld)).value();
  Fd second = hold_image(image(kOld)).value();
  EXPECT_TRUE(is_held(image(kOld).path));
  first.reset();
  const auto refused = remove_image(state_.path(), kOld, NamedImages::remove);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::state_in_use);
  EXPECT_THAT(refused.error().message, HasSubstr("in use by process"));
  second.reset();
  EXPECT_FALSE(is_held(image(kOld).path));
  EXPECT_TRUE(remove_image(state_.path(), kOld, NamedImages::remove));
}

TEST_F(ImageRemoval, AnImageThatWentMeanwhileCannotBeHeld) {
  const Image gone = image(kOld);
  ASSERT_TRUE(remove_image(state_.path(), kOld, NamedImages::refuse));
  EXPECT_FALSE(hold_image(gone));
}

TEST_F(ImageRemoval, PublishingWaitsForNobodyWhoOnlyUsesAnImage) {
  const Fd hold = hold_image(image(kOld)).value();
  const Layout layout(state_.path());
  EXPECT_TRUE(lock_store(layout));
  const auto builds = try_builds_lock(layout);
  ASSERT_TRUE(builds);
  EXPECT_FALSE(try_builds_lock(layout));
}

TEST_F(ImageRemoval, PruneKeepsWhatANameMeans) {
  const Pruned pruned = prune({.state_dir = state_.path()}).value();
  ASSERT_EQ(pruned.images.size(), 1U);
  EXPECT_EQ(pruned.images.front().digest, kOld);
  EXPECT_GE(pruned.freed_bytes, 10'000U);
  EXPECT_THAT(state_.list("images"),
              ElementsAre(kNew + ".erofs", kNew + ".json", "build.lock", "refs"));
  EXPECT_THAT(prune({.state_dir = state_.path()})->images, IsEmpty());
}

TEST(ImageTree, RemovesLinksAndNotWhatTheyPointTo) {
  const ScratchDirectory place;
  place.write("outside/keep", "kept");
  place.write("tree/a/b/c", "x");
  std::filesystem::create_directory_symlink(place.path("outside"), place.path("tree/a/link"));
  ::chmod(place.path("tree/a/b").c_str(), 0555);
  std::uint64_t freed = 0;
  const Status removed = remove_tree(place.path("tree"), freed);
  ASSERT_TRUE(removed) << describe(removed.error());
  EXPECT_THAT(place.list(), ElementsAre("outside"));
  EXPECT_EQ(place.read("outside/keep"), "kept");
  EXPECT_GT(freed, 0U);
  EXPECT_TRUE(remove_tree(place.path("nothing"), freed));
}

TEST_F(ImageRemoval, GoesRoundWhatAKilledRemovalHasLeft) {
  state_.write("images/.removed-" + kOld + ".erofs/left", "x");
  const auto removed = remove_image(state_.path(), kOld, NamedImages::refuse);
  EXPECT_TRUE(removed) << (removed ? "" : describe(removed.error()));
  EXPECT_FALSE(sys::exists(image(kOld).path));
}

TEST_F(ImageRemoval, RefusesAPlaceThatOthersCouldExchange) {
  ASSERT_EQ(::chmod(state_.path().c_str(), 0777), 0);
  const auto refused = remove_image(state_.path(), kOld, NamedImages::refuse);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::not_permitted);
  EXPECT_TRUE(sys::exists(image(kOld).path));
}

}  // namespace
}  // namespace hutch::image
