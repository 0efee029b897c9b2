#include "image/build.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/sys.h"
#include "image/scratch_directory.h"

namespace hutch::image {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kToml = R"(
name = "tiny"
python = "/usr/bin/python3"
default_profile = "bare"
[profiles.bare]
imports = []
)";

constexpr std::string_view kRecipe = R"(#!/bin/sh
set -e
echo making
mkdir -p "$1/etc" "$2/downloads"
echo sandbox >"$1/etc/hostname"
printf 'debian\tbash\t5.2\n' >"$3/packages.tsv"
)";

// A state directory and a recipe that takes no time. The builds themselves need root.
class ImageBuild : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "a build needs root";
    recipe_.write("image.toml", kToml);
    recipe_.write_program("build", kRecipe);
  }

  Result<BuildResult> build(Rebuild rebuild = Rebuild::when_changed, int interrupt_fd = -1) {
    const BuildOptions options{
        .state_dir = state_.path(),
        .name = "tiny",
        .places = {.given = recipe_.path(), .images_dir = {}, .program_dir = {}},
        .rebuild = rebuild,
        .packing = packing_,
        .interrupt_fd = interrupt_fd,
    };
    return build_image(options, clock_, [this](std::string_view step) {
      steps_.emplace_back(step);
      if (on_step_) on_step_(step);
    });
  }

  ScratchDirectory state_;
  ScratchDirectory recipe_;
  SystemClock clock_;
  Packing packing_ = Packing::erofs_where_possible;
  std::vector<std::string> steps_;
  std::function<void(std::string_view)> on_step_;
};

TEST_F(ImageBuild, PublishesWhatTheRecipeMadeAndLeavesNothingElse) {
  const auto built = build();
  ASSERT_TRUE(built) << built.error().message;
  EXPECT_FALSE(built->already_built);
  EXPECT_THAT(steps_, Contains("making"));
  const auto known = read_metadata(state_.path(), "tiny");
  ASSERT_TRUE(known) << known.error().message;
  EXPECT_EQ(known->digest, built->digest);
  EXPECT_EQ(known->packages, (std::vector<Package>{{"debian", "bash", "5.2"}}));
  EXPECT_FALSE(std::filesystem::exists(state_.path("images/tmp")));
  EXPECT_THAT(state_.list("cache"), ElementsAre("downloads", "tiny-build.log"));
}

TEST_F(ImageBuild, TheSameTreeGivesTheSameDigest) {
  const auto first = build();
  const auto second = build(Rebuild::always);
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(second->already_built);
  EXPECT_EQ(first->digest, second->digest);
}

TEST_F(ImageBuild, AnUnchangedRecipeIsNotBuiltAgain) {
  ASSERT_TRUE(build());
  steps_.clear();
  const auto again = build();
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->already_built);
  EXPECT_TRUE(steps_.empty());
  recipe_.write_program("build", std::string(kRecipe) + "echo x >\"$1/new\"\n");
  const auto changed = build();
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_FALSE(changed->already_built);
  EXPECT_NE(changed->digest, again->digest);
}

TEST_F(ImageBuild, PacksADirectoryWhenAsked) {
  packing_ = Packing::directory;
  const auto first = build();
  ASSERT_TRUE(first) << first.error().message;
  const auto image = open_image(state_.path(), "tiny");
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_FALSE(image->is_erofs);
  EXPECT_EQ(state_.read("images/" + first->digest + "/etc/hostname"), "sandbox\n");
  EXPECT_TRUE(build()->already_built);
  EXPECT_EQ(build(Rebuild::always)->digest, first->digest);
  EXPECT_FALSE(std::filesystem::exists(state_.path("images/tmp")));
}

TEST_F(ImageBuild, AFailedBuildKeepsTheOldImage) {
  const auto good = build();
  ASSERT_TRUE(good);
  recipe_.write_program(
      "build", "#!/bin/sh\necho stepping\nmkdir -p $1/x\necho 'error: no luck' >&2\nexit 1\n");
  const auto bad = build();
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().message, StartsWith("no luck (while stepping; the whole log is "));
  EXPECT_EQ(open_image(state_.path(), "tiny")->digest, good->digest);
  EXPECT_FALSE(std::filesystem::exists(state_.path("images/tmp")));
}

TEST_F(ImageBuild, AFailureWithoutAReasonShowsTheLog) {
  recipe_.write_program("build", "#!/bin/sh\necho a >&2; echo b >&2; exit 7\n");
  const auto bad = build();
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().message, StartsWith("the recipe failed (exit status 7) while starting"));
  EXPECT_THAT(bad.error().message, EndsWith("ends with:\na\nb"));
}

TEST_F(ImageBuild, AnInterruptLeavesOnlyTheCache) {
  auto wire = sys::pipe();
  ASSERT_TRUE(wire);
  recipe_.write_program("build", "#!/bin/sh\nmkdir -p $1/half\necho waiting\nsleep 60\n");
  on_step_ = [&](std::string_view step) {
    if (step == "waiting") {
      ASSERT_TRUE(sys::write_all(wire->write.get(), "x"));
    }
  };
  const auto stopped = build(Rebuild::when_changed, wire->read.get());
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::cancelled);
  EXPECT_THAT(state_.list("images"), ElementsAre("build.lock", "refs"));
  EXPECT_TRUE(state_.list("images/refs").empty());
}

TEST_F(ImageBuild, SweepsWhatAKilledBuildLeft) {
  state_.write("images/tmp/tiny/rootfs/etc/x", "half");
  state_.write("images/refs/tiny.new", "half");
  ASSERT_TRUE(build());
  EXPECT_FALSE(std::filesystem::exists(state_.path("images/tmp")));
  EXPECT_THAT(state_.list("images/refs"), ElementsAre("tiny"));
}

TEST_F(ImageBuild, WaitsForAnotherBuildAndSaysSo) {
  state_.write("images/build.lock", "");
  auto lock = sys::open(state_.path("images/build.lock"), O_RDWR);
  ASSERT_TRUE(lock);
  ASSERT_EQ(::flock(lock->get(), LOCK_EX), 0);
  on_step_ = [&](std::string_view step) {
    if (step.starts_with("waiting for another build")) lock->reset();
  };
  ASSERT_TRUE(build());
  EXPECT_THAT(steps_.front(), StartsWith("waiting for another build"));
}

TEST_F(ImageBuild, AMissingToolNamesTheLineToType) {
  recipe_.write("image.toml",
                std::string(kToml) + "[build_tools]\nno-such-tool = \"tool-package\"\n");
  const auto bad = build();
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message, "missing: no-such-tool; type: apt-get install tool-package");
}

TEST_F(ImageBuild, ARecipeForAnotherImageIsRefused) {
  recipe_.write("image.toml",
                "name = \"other\"\npython = \"/p\"\ndefault_profile = \"b\"\n[profiles.b]\n");
  EXPECT_THAT(build().error().message, EndsWith("describes the image \"other\", not \"tiny\""));
}

TEST_F(ImageBuild, TooLittleSpaceIsSaidBeforehand) {
  recipe_.write("image.toml", "build_space_bytes = 1_000_000_000_000_000\n" + std::string(kToml));
  const auto bad = build();
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, ErrorCode::disk_full);
  EXPECT_THAT(bad.error().message, HasSubstr("building tiny needs about 1000000.0 GB in "));
}

// The mount is visible to this test's process alone.
TEST_F(ImageBuild, AFullDiskNamesPathSpaceAndRemedy) {
  ASSERT_EQ(::unshare(CLONE_NEWNS), 0);
  ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
  ASSERT_EQ(::mount("small", state_.path().c_str(), "tmpfs", 0, "size=1m"), 0);
  recipe_.write_program("build",
                        "#!/bin/sh\necho filling\nmkdir -p $1\n"
                        "dd if=/dev/zero of=$1/big bs=64k count=64\n");
  const auto bad = build();
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, ErrorCode::disk_full);
  EXPECT_THAT(bad.error().message,
              StartsWith(fmt::format("no space left in {} (", state_.path("images"))));
  EXPECT_THAT(bad.error().message, HasSubstr(" free) while filling; "));
  EXPECT_THAT(bad.error().message, HasSubstr("--state-dir"));
  EXPECT_THAT(state_.list("images"), Not(Contains("tmp")));
  ASSERT_EQ(::umount(state_.path().c_str()), 0);
}

TEST(ImageRecipe, IsLookedForInAFixedOrder) {
  EXPECT_THAT(recipe_candidates("a", {.given = "/x", .images_dir = "/y", .program_dir = "/z"}),
              ElementsAre("/x"));
  EXPECT_THAT(
      recipe_candidates("a", {.given = {}, .images_dir = "/y", .program_dir = "/s/build/release"}),
      ElementsAre("/y/a", "/s/images/a", "/s/build/share/hutch/images/a",
                  "/usr/share/hutch/images/a"));
}

TEST(ImageRecipe, AbsenceListsThePlaces) {
  const RecipePlaces places{.given = {}, .images_dir = "/nowhere", .program_dir = {}};
  const auto found = find_recipe("ghost", places, [] { return false; });
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message,
            "there is no recipe for the image \"ghost\"; looked in /nowhere/ghost, "
            "/usr/share/hutch/images/ghost");
}

TEST(ImageText, SizesForPeople) {
  EXPECT_EQ(human_bytes(509'333'504), "509 MB");
  EXPECT_EQ(human_bytes(1'600'000'000), "1.6 GB");
  EXPECT_EQ(human_bytes(4'096), "4 kB");
}

}  // namespace
}  // namespace hutch::image
