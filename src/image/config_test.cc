#include "image/config.h"

#include <gtest/gtest.h>

#include "base/sys.h"

namespace hutch::image {
namespace {

constexpr std::string_view kGood = R"(
name = "tiny"
python = "/usr/bin/python3"
default_profile = "bare"
build_space_bytes = 1_000
[env]
LANG = "C.UTF-8"
[profiles.bare]
imports = []
[profiles.maths]
imports = ["math", "cmath"]
[[home_links]]
path = ".cache/a/b"
target = "/opt/b"
[build_tools]
tar = "tar"
)";

std::string refusal(std::string_view text) {
  const auto parsed = parse_image_toml(text, "image.toml");
  return parsed ? "accepted" : parsed.error().message;
}

TEST(ImageConfig, ReadsEveryKey) {
  const auto config = parse_image_toml(kGood, "image.toml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->name, "tiny");
  EXPECT_EQ(config->python, "/usr/bin/python3");
  EXPECT_EQ(config->env.at("LANG"), "C.UTF-8");
  EXPECT_TRUE(config->profiles.at("bare").empty());
  EXPECT_EQ(config->profiles.at("maths"), (std::vector<std::string>{"math", "cmath"}));
  EXPECT_EQ(config->home_links, (std::vector<HomeLink>{{".cache/a/b", "/opt/b"}}));
  EXPECT_EQ(config->build_space_bytes, 1000U);
  EXPECT_EQ(config->build_tools.at("tar"), "tar");
}

TEST(ImageConfig, SurvivesJson) {
  const auto config = parse_image_toml(kGood, "image.toml");
  ASSERT_TRUE(config);
  const auto back = config_from_json(to_json(*config));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, *config);
}

TEST(ImageConfig, RefusalsNameThePlace) {
  EXPECT_EQ(refusal("name = \"a\"\nnmae = 1\n"), "image.toml:2:8: unknown key `nmae`");
  EXPECT_EQ(refusal("name = 3\n"), "image.toml:1:8: `name` must be a string that is not empty");
  EXPECT_EQ(refusal("[profiles.x]\nimport = []\n"),
            "image.toml:2:10: unknown key `profiles.x.import`");
  EXPECT_TRUE(refusal("name = \n").starts_with("image.toml:1:8: ")) << refusal("name = \n");
  EXPECT_TRUE(refusal("").ends_with("`name` is missing")) << refusal("");
}

TEST(ImageConfig, HomeLinksStayInTheHome) {
  for (const char* path : {"/etc/passwd", "../x", "a/../../x", "a//b", "."}) {
    const std::string text =
        std::string("[[home_links]]\npath = \"") + path + "\"\ntarget = \"/opt/x\"\n";
    EXPECT_TRUE(refusal(text).ends_with("`path` must stay below the home directory")) << path;
  }
}

TEST(ImageConfig, DefaultProfileMustExist) {
  const std::string text = "name = \"a\"\npython = \"/p\"\ndefault_profile = \"no\"\n";
  EXPECT_TRUE(refusal(text).ends_with("`default_profile` is \"no\", which is no profile"));
}

TEST(ImageConfig, DamagedJsonIsAnError) {
  EXPECT_FALSE(config_from_json(boost::json::value("text")));
  EXPECT_FALSE(config_from_json(boost::json::object{{"name", 3}}));
}

TEST(ImageConfig, NamesAndDigests) {
  EXPECT_TRUE(is_image_name("python"));
  EXPECT_TRUE(is_image_name("r-4.3_x"));
  for (const char* name : {"", ".hidden", "-x", "a/b", "A", "a b"}) {
    EXPECT_FALSE(is_image_name(name)) << name;
  }
  EXPECT_FALSE(is_image_name(std::string(65, 'a')));
  EXPECT_TRUE(is_digest(std::string(64, 'a')));
  EXPECT_FALSE(is_digest(std::string(63, 'a')));
  EXPECT_FALSE(is_digest(std::string(64, 'A')));
}

TEST(ImageConfig, TheRecipesOfThisTreeAreGood) {
  const std::string path = std::string(HUTCH_SOURCE_DIR) + "/images/python/image.toml";
  const auto text = sys::read_file(path, 65536);
  ASSERT_TRUE(text);
  const auto config = parse_image_toml(*text, path);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->default_profile, "science");
  EXPECT_TRUE(config->profiles.contains("bare"));
}

}  // namespace
}  // namespace hutch::image
