#include "cli/client_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/sys.h"

namespace hutch::cli {
namespace {

using testing::HasSubstr;

class ClientSettingsTest : public testing::Test {
 protected:
  ClientSettingsTest()
      : directory_(testing::TempDir() + "hutch_settings_" + std::to_string(::getpid())) {
    std::filesystem::create_directories(directory_);
    environment_.config_file = directory_ + "/config.toml";
  }
  ~ClientSettingsTest() override { std::filesystem::remove_all(directory_); }

  void write(const std::string& text, mode_t mode = 0600) {
    ASSERT_TRUE(sys::write_file_atomic(environment_.config_file, text, mode));
    ::chmod(environment_.config_file.c_str(), mode);
  }
  Result<ClientSettings> load(const ClientFlags& flags = {}) {
    return load_client_settings(flags, environment_);
  }
  std::string refusal(const ClientFlags& flags = {}) {
    const auto settings = load(flags);
    if (settings) return "it was taken";
    EXPECT_EQ(settings.error().code, ErrorCode::config);
    return settings.error().message;
  }

  std::string directory_;
  ClientEnvironment environment_;
};

constexpr const char* kTwoProfiles = R"(profile = "home"
[profiles.home]
internal_url = "http://127.0.0.1:9000"
[profiles.work]
url = "http://hutch.example:8080"
internal_url = "http://10.0.0.1:8700/"
api_key = "secret"
)";

TEST_F(ClientSettingsTest, WithNothingSaidTheDefaultIsMeant) {
  const auto settings = load();
  ASSERT_TRUE(settings);
  EXPECT_TRUE(settings->internal_is_default);
  EXPECT_EQ(settings->internal.url, "http://127.0.0.1:8700");
  EXPECT_EQ(settings->api_key, "");
}

TEST_F(ClientSettingsTest, FlagWinsOverEnvironmentAndThatOverTheProfile) {
  write(kTwoProfiles);
  EXPECT_EQ(load()->internal.url, "http://127.0.0.1:9000");
  EXPECT_EQ(load()->internal_origin, "profile home");
  EXPECT_EQ(load({.profile = "work"})->internal.url, "http://10.0.0.1:8700");
  environment_.profile = "work";
  EXPECT_EQ(load()->internal.host, "10.0.0.1");
  EXPECT_EQ(load()->url, "http://hutch.example:8080");
  EXPECT_EQ(load()->api_key, "secret");
  environment_.internal_url = "http://127.0.0.1:1234";
  environment_.api_key = "other";
  environment_.url = "http://elsewhere";
  EXPECT_EQ(load()->internal.port, 1234);
  EXPECT_EQ(load()->api_key, "other");
  EXPECT_EQ(load()->url, "http://elsewhere");
  EXPECT_EQ(load({.url = "http://[::1]:7"})->internal.host, "::1");
  EXPECT_FALSE(load({.url = "http://[::1]:7"})->internal_is_default);
  EXPECT_EQ(load({.url = "http://[::1]:7"})->internal_origin, "--url");
}

TEST_F(ClientSettingsTest, AKeyThatOthersCanReadIsRefused) {
  for (const mode_t mode : {0640, 0604, 0610, 0660}) {
    write(kTwoProfiles, mode);
    EXPECT_THAT(refusal(), HasSubstr("run: chmod 600 " + environment_.config_file));
  }
  write("[profiles.home]\nurl = \"http://a\"\n", 0644);
  EXPECT_TRUE(load());
}

TEST_F(ClientSettingsTest, AnUnknownProfileNamesTheKnown) {
  write(kTwoProfiles);
  EXPECT_THAT(refusal({.profile = "hmoe"}), HasSubstr("--profile names the profile \"hmoe\""));
  EXPECT_THAT(refusal({.profile = "hmoe"}), HasSubstr("has home, work"));
  environment_.config_file += ".missing";
  EXPECT_THAT(refusal({.profile = "x"}), HasSubstr("has none"));
  environment_.config_file.clear();
  EXPECT_THAT(refusal({.profile = "x"}), HasSubstr("without HOME"));
}

TEST_F(ClientSettingsTest, WhatTheFileShouldNotHaveIsNamedWithItsPlace) {
  write("[profiles.a]\ninternal_rul = \"x\"\n");
  EXPECT_THAT(refusal(), HasSubstr("config.toml:2:1: unknown key \"internal_rul\" in profile a"));
  write("profiles = 3\n");
  EXPECT_THAT(refusal(), HasSubstr("[profiles.NAME]"));
  write("[profiles]\na = 3\n");
  EXPECT_THAT(refusal(), HasSubstr("write [profiles.a]"));
  write("[profiles.a]\nurl = 3\n");
  EXPECT_THAT(refusal(), HasSubstr("url must be a string"));
  write("profile = \n");
  EXPECT_THAT(refusal(), HasSubstr("config.toml:1:"));
  write("token = \"x\"\n");
  EXPECT_THAT(refusal(), HasSubstr("\"token\" is not for here"));
}

TEST_F(ClientSettingsTest, AnAddressThatIsNoneNamesWhereItCameFrom) {
  environment_.internal_url = "localhost:8700";
  EXPECT_THAT(refusal(), HasSubstr("HUTCH_INTERNAL_URL: \"localhost:8700\" is not the address"));
  EXPECT_THAT(refusal({.url = "https://a"}), HasSubstr("--url: \"https://a\" asks for TLS"));
}

TEST_F(ClientSettingsTest, AKeyThatCouldEndItsLineIsRefused) {
  for (const char* key : {"a b", "a\r\nX: y", "\xc3\xa4"}) {
    environment_.api_key = key;
    EXPECT_THAT(refusal(), HasSubstr("HUTCH_API_KEY must be"));
  }
}

}  // namespace
}  // namespace hutch::cli
