#include "image/store.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "image/digest.h"
#include "image/scratch_directory.h"

namespace hutch::image {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kOld(64, 'a');
const std::string kNew(64, 'b');

Metadata metadata(std::string digest, std::string created) {
  Metadata made;
  made.digest = std::move(digest);
  made.recipe_digest = std::string(64, '0');
  made.created = std::move(created);
  made.size_bytes = 5;
  made.packages = {{"pypi", "numpy", "2.0"}, {"debian", "bash", "5.2-1+b1"}};
  made.config.name = "tiny";
  made.config.python = "/usr/bin/python3";
  made.config.profiles["bare"] = {};
  made.config.default_profile = "bare";
  return made;
}

void publish_file(const ScratchDirectory& state, const Metadata& made) {
  state.write("images/tmp/tiny/image.erofs", "bytes");
  const auto done = publish(state.path(), made, state.path("images/tmp/tiny/image.erofs"));
  ASSERT_TRUE(done) << done.error().message;
}

TEST(ImageStore, MetadataSurvivesItsText) {
  const Metadata made = metadata(kOld, "2026-01-01T00:00:00Z");
  const auto back = parse_metadata(metadata_text(made));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, made);
}

TEST(ImageStore, OpensByNameAndByDigest) {
  const ScratchDirectory state;
  publish_file(state, metadata(kOld, "2026-01-01T00:00:00Z"));
  for (const std::string_view key : {std::string_view("tiny"), std::string_view(kOld)}) {
    const auto image = open_image(state.path(), key);
    ASSERT_TRUE(image) << image.error().message;
    EXPECT_EQ(image->name, "tiny");
    EXPECT_EQ(image->digest, kOld);
    EXPECT_EQ(image->path, state.path("images/" + kOld + ".erofs"));
    EXPECT_TRUE(image->is_erofs);
    EXPECT_EQ(image->config.python, "/usr/bin/python3");
  }
}

TEST(ImageStore, OpensADirectoryWhereThereIsNoErofs) {
  const ScratchDirectory state;
  Metadata made = metadata(kOld, "2026-01-01T00:00:00Z");
  made.format = Format::directory;
  state.write("images/tmp/tiny/rootfs/etc/hostname", "sandbox\n");
  ASSERT_TRUE(publish(state.path(), made, state.path("images/tmp/tiny/rootfs")));
  const auto image = open_image(state.path(), "tiny");
  ASSERT_TRUE(image);
  EXPECT_FALSE(image->is_erofs);
  EXPECT_EQ(image->path, state.path("images/" + kOld));
}

TEST(ImageStore, AnImageThatIsWantedByItsDigestTakesNoName) {
  const ScratchDirectory state;
  publish_file(state, metadata(kNew, "2026-01-02T00:00:00Z"));
  Metadata made = metadata(kOld, "2026-01-01T00:00:00Z");
  made.format = Format::directory;
  state.write("images/tmp/tiny/rootfs/etc/hostname", "sandbox\n");
  ASSERT_TRUE(
      publish(state.path(), made, state.path("images/tmp/tiny/rootfs"), Naming::leave_name));
  EXPECT_EQ(open_image(state.path(), "tiny")->digest, kNew);
  EXPECT_EQ(open_image(state.path(), kOld)->digest, kOld);
}

TEST(ImageStore, NoImageSaysWhatToType) {
  const ScratchDirectory state;
  const auto image = open_image(state.path(), "tiny");
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().code, ErrorCode::no_image);
  EXPECT_EQ(image.error().message, fmt::format("there is no image \"tiny\" in {0}; build one with: "
                                               "hutch image build tiny --state-dir {0}",
                                               state.path()));
  EXPECT_EQ(open_image(state.path(), "../etc/passwd").error().code, ErrorCode::no_image);
  EXPECT_EQ(open_image(state.path(), kNew).error().code, ErrorCode::no_image);
}

TEST(ImageStore, ANameWhoseImageIsGoneIsNoImage) {
  const ScratchDirectory state;
  publish_file(state, metadata(kOld, "2026-01-01T00:00:00Z"));
  std::filesystem::remove(state.path("images/" + kOld + ".erofs"));
  EXPECT_EQ(open_image(state.path(), "tiny").error().code, ErrorCode::no_image);
}

TEST(ImageStore, TheNameMovesLastAndTheOldImageStays) {
  const ScratchDirectory state;
  publish_file(state, metadata(kOld, "2026-01-01T00:00:00Z"));
  // A publication that fails half way changes nothing for readers.
  EXPECT_FALSE(publish(state.path(), metadata(kNew, "2026-02-01T00:00:00Z"),
                       state.path("images/tmp/nothing")));
  EXPECT_EQ(open_image(state.path(), "tiny")->digest, kOld);
  EXPECT_FALSE(std::filesystem::exists(Layout(state.path()).metadata_path(kNew)));

  publish_file(state, metadata(kNew, "2026-02-01T00:00:00Z"));
  EXPECT_EQ(open_image(state.path(), "tiny")->digest, kNew);
  EXPECT_EQ(open_image(state.path(), kOld)->digest, kOld);
  EXPECT_THAT(state.list("images/refs"), ElementsAre("tiny"));
}

TEST(ImageStore, ListsTheCurrentOneFirst) {
  const ScratchDirectory state;
  EXPECT_TRUE(list_images(state.path("nowhere"))->empty());
  publish_file(state, metadata(kOld, "2026-01-01T00:00:00Z"));
  publish_file(state, metadata(kNew, "2026-02-01T00:00:00Z"));
  const std::string damaged(64, 'c');
  state.write("images/" + damaged + ".json", "{");
  const auto images = list_images(state.path());
  ASSERT_TRUE(images) << images.error().message;
  ASSERT_EQ(images->size(), 2U);
  EXPECT_EQ(images->at(0).metadata.digest, kNew);
  EXPECT_TRUE(images->at(0).current);
  EXPECT_EQ(images->at(1).metadata.digest, kOld);
  EXPECT_FALSE(images->at(1).current);
}

TEST(ImageStore, DamageIsAnErrorAndNotACrash) {
  const ScratchDirectory state;
  publish_file(state, metadata(kOld, "2026-01-01T00:00:00Z"));
  state.write("images/" + kOld + ".json", "{\"digest\": 3}");
  EXPECT_THAT(open_image(state.path(), "tiny").error().message, HasSubstr("damaged"));
  state.write("images/refs/tiny", "no digest");
  EXPECT_THAT(open_image(state.path(), "tiny").error().message, HasSubstr("holds no digest"));
}

class RecipeDigest : public ::testing::Test {
 protected:
  RecipeDigest() {
    recipe_.write("image.toml", "name = \"tiny\"\n");
    recipe_.write_program("build", "#!/bin/sh\n");
    recipe_.write("files/etc/hosts", "127.0.0.1 localhost\n");
    before_ = now();
  }
  std::string now() const {
    return tree_digest(recipe_.path(), TreeKind::recipe, [] { return false; }).value();
  }
  ScratchDirectory recipe_;
  std::string before_;
};

TEST_F(RecipeDigest, ChangesWithContentNamesAndExecutableBits) {
  recipe_.write("files/etc/hosts", "127.0.0.2 localhost\n");
  EXPECT_NE(now(), before_);
  recipe_.write("files/etc/hosts", "127.0.0.1 localhost\n");
  EXPECT_EQ(now(), before_);
  std::filesystem::permissions(recipe_.path("build"), std::filesystem::perms(0644));
  EXPECT_NE(now(), before_);
  std::filesystem::permissions(recipe_.path("build"), std::filesystem::perms(0755));
  std::filesystem::rename(recipe_.path("files/etc/hosts"), recipe_.path("files/etc/host"));
  EXPECT_NE(now(), before_);
}

TEST_F(RecipeDigest, IgnoresTimesAndWhatEditorsLeave) {
  recipe_.write(".build.swp", "x");
  recipe_.write("files/__pycache__/a.pyc", "x");
  std::filesystem::last_write_time(recipe_.path("build"), std::filesystem::file_time_type::min());
  EXPECT_EQ(now(), before_);
}

TEST_F(RecipeDigest, StopsWhenAsked) {
  const auto stopped = tree_digest(recipe_.path(), TreeKind::recipe, [] { return true; });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::cancelled);
}

}  // namespace
}  // namespace hutch::image
