#include "config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "config/config_table.h"

namespace hutch::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class ConfigTest : public testing::Test {
 protected:
  ConfigTest()
      : file_(testing::TempDir() + "hutch_config_" + std::to_string(::getpid()) + ".toml") {}
  ~ConfigTest() override { ::unlink(file_.c_str()); }

  Result<Config> load_text(const std::string& toml, std::vector<std::string> settings = {}) {
    std::ofstream(file_) << toml;
    return load({.file = file_, .settings = std::move(settings)});
  }
  // The refusal, without the name of the file in front.
  std::string refusal(const std::string& toml) {
    const Result<Config> result = load_text(toml);
    if (result) return "accepted";
    EXPECT_EQ(result.error().code, ErrorCode::config);
    EXPECT_THAT(result.error().message, StartsWith(file_ + ":"));
    return result.error().message.substr(std::min(file_.size() + 1, result.error().message.size()));
  }

  std::string file_;
};

Result<Config> with(std::vector<std::string> settings) {
  return load({.file = "", .settings = std::move(settings)});
}

std::string refused(std::vector<std::string> settings) {
  const Result<Config> result = with(std::move(settings));
  return result ? "accepted" : result.error().message;
}

TEST_F(ConfigTest, NothingGivenMeansTheDefaults) {
  const Config config = load({}).value();
  EXPECT_EQ(config.internal.listen, "127.0.0.1:8700");
  EXPECT_EQ(config.public_door.listen, "127.0.0.1:8080");
  EXPECT_EQ(config.limits.memory_bytes, 512_MiB);
  EXPECT_EQ(config.pool.ceiling, 3U);
  EXPECT_EQ(config.state_dir, default_state_dir());
}

TEST_F(ConfigTest, EveryDefaultLiesInItsOwnRange) {
  for (const Field& field : fields()) {
    if (field.kind == Kind::text || field.kind == Kind::list) continue;
    const Result<Config> config = with({std::string(field.key) + "=" + show(field, Config{})});
    EXPECT_TRUE(config) << config.error().message;
  }
}

TEST_F(ConfigTest, AFileSetsEveryKind) {
  const Config config = load_text(R"(
image = "python"
[internal]
listen = "[::1]:0"
hosts = ["hutch.example", "agents.example"]
[limits]
memory_bytes = "1GiB"
disk_bytes = 134_217_728
cpus = 0.5
[pool]
target = 5
wait_ms = 100
)")
                            .value();
  EXPECT_THAT(config.internal.hosts, ElementsAre("hutch.example", "agents.example"));
  EXPECT_EQ(config.limits.memory_bytes, 1_GiB);
  EXPECT_EQ(config.limits.disk_bytes, 128_MiB);
  EXPECT_EQ(config.limits.cpus, 0.5);
  EXPECT_EQ(config.pool.target, 5U);
  EXPECT_EQ(config.pool.ceiling, 5U);
}

TEST_F(ConfigTest, SettingsWinOverTheFileAndLaterOnesOverEarlierOnes) {
  const Config config =
      load_text("[limits]\nprocesses = 50\n", {"limits.processes=60", "limits.processes=70"})
          .value();
  EXPECT_EQ(config.limits.processes, 70U);
}

std::string origin(const Loaded& loaded, std::string_view key) {
  const std::size_t at = static_cast<std::size_t>(find_field(key) - fields().data());
  return origin_text(loaded.origins.at(at));
}

TEST_F(ConfigTest, EachValueTellsWhereItComesFrom) {
  std::ofstream(file_) << "[limits]\nprocesses = 50\ncpus = 2\n[pool]\ntarget = 4\n";
  const Loaded loaded = load_with_origins({.file = file_,
                                           .settings = {"limits.cpus=3"},
                                           .flags = {{"--internal", "internal.listen=[::1]:0"}},
                                           .state_dir = {"/here/hutch", "XDG_STATE_HOME"}})
                            .value();
  EXPECT_EQ(loaded.file, file_);
  EXPECT_EQ(origin(loaded, "limits.processes"), file_ + ":2");
  EXPECT_EQ(origin(loaded, "limits.cpus"), "--set");
  EXPECT_EQ(origin(loaded, "internal.listen"), "--internal");
  EXPECT_EQ(origin(loaded, "pool.ceiling"), "follows pool.target");
  EXPECT_EQ(origin(loaded, "state_dir"), "environment XDG_STATE_HOME");
  EXPECT_EQ(loaded.config.state_dir, "/here/hutch");
  EXPECT_EQ(origin(loaded, "runs.max"), "default");
}

TEST_F(ConfigTest, TheFirstDefaultFileThatExistsIsReadUnlessOneIsNamed) {
  std::ofstream(file_) << "image = \"second\"\n";
  const std::vector<std::string> places{"/nonexistent/hutch.toml", file_, "/nonexistent/more"};
  EXPECT_EQ(load({.default_files = places})->image, "second");
  EXPECT_EQ(load({.file = "/dev/null", .default_files = places})->image, "python");
}

TEST_F(ConfigTest, AFileThatNobodyNamedAndOthersCanWriteIsRefused) {
  std::ofstream(file_) << "image = \"second\"\n";
  ::chmod(file_.c_str(), 0664);
  EXPECT_THAT(load({.default_files = {file_}}).error().message, HasSubstr("chmod go-w " + file_));
  EXPECT_TRUE(load({.file = file_}));
  ::chmod(file_.c_str(), 0644);
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown(file_.c_str(), 1234, 1234), 0);
  EXPECT_THAT(load({.default_files = {file_}}).error().message, HasSubstr("belongs to uid 1234"));
}

TEST_F(ConfigTest, AReloadTakesOverWhatIsLiveAndNamesTheRest) {
  const Config was = load({}).value();
  const Config now = with({"pool.target=5", "limits.cpus=2", "log.level=debug"}).value();
  std::vector<std::string> live;
  std::vector<std::string> rest;
  for (const Difference& one : differences(was, now)) {
    (one.live ? live : rest).push_back(one.key + " " + one.was + " " + one.now);
  }
  EXPECT_THAT(live,
              ElementsAre("pool.target 3 5", "pool.ceiling 3 5", R"(log.level "info" "debug")"));
  EXPECT_THAT(rest, ElementsAre("limits.cpus 1 2"));
  const Config merged = take_over_live(was, now);
  EXPECT_EQ(merged.pool.target, 5U);
  EXPECT_EQ(merged.limits.cpus, 1.0);
  EXPECT_TRUE(differences(merged, take_over_live(merged, now)).empty());
}

TEST_F(ConfigTest, SettingsTakeWhatTheFileTakes) {
  const Config config = with({"limits.memory_bytes=768MiB", "limits.cpus=2",
                              "internal.hosts=a.example,b.example", "public.hosts="})
                            .value();
  EXPECT_EQ(config.limits.memory_bytes, 768_MiB);
  EXPECT_EQ(config.limits.cpus, 2.0);
  EXPECT_THAT(config.internal.hosts, ElementsAre("a.example", "b.example"));
  EXPECT_TRUE(config.public_door.hosts.empty());
}

TEST_F(ConfigTest, UnknownKeysAreRefusedWithTheirPlaceAndTheNearestName) {
  EXPECT_EQ(refusal("\n[limits]\nmemroy_bytes = 1\n"),
            R"(3:1: unknown key "limits.memroy_bytes"; did you mean "limits.memory_bytes"?)");
  EXPECT_EQ(refusal("[limit]\ncpus = 1\n"), R"(1:2: unknown key "limit"; did you mean "limits"?)");
  EXPECT_EQ(refusal("cpus = 1\n"), R"(1:1: unknown key "cpus"; did you mean "limits.cpus"?)");
  EXPECT_EQ(refusal("zzzzzzzzzzzz = 1\n"),
            R"(1:1: unknown key "zzzzzzzzzzzz"; `hutch docs config` lists the keys)");
  EXPECT_EQ(refused({"pool.targets=3"}),
            R"(--set pool.targets=3: unknown key "pool.targets"; did you mean "pool.target"?)");
}

TEST_F(ConfigTest, WrongTypesNameTheKeyAndWhatIsAllowed) {
  EXPECT_EQ(refusal("[pool]\ntarget = \"three\"\n"),
            R"(2:10: pool.target must be an integer, and is "three")");
  EXPECT_EQ(refusal("[limits]\nmemory_bytes = \"512MB\"\n"),
            R"(2:16: limits.memory_bytes must be a size in bytes, such as 1048576 or "1MiB" )"
            R"((units B KiB MiB GiB TiB), and is "512MB")");
  EXPECT_THAT(refusal("[limits]\ncpus = true\n"), HasSubstr("must be a number, and is a boolean"));
  EXPECT_THAT(refusal("[pool]\nwait_ms = 1.5\n"), HasSubstr("in milliseconds, and is a number"));
  EXPECT_THAT(refusal("[public]\nhosts = [1]\n"), HasSubstr("must be an array of strings"));
  EXPECT_THAT(refusal("image = 1979-05-27\n"), HasSubstr("a string, and is a date or a time"));
  EXPECT_THAT(refusal("limits = 3\n"), HasSubstr("1:10: limits is a group of settings"));
  EXPECT_THAT(refused({"limits.cpus=nan"}), HasSubstr("limits.cpus must be"));
  EXPECT_THAT(refused({"limits.cpus"}), HasSubstr("write it as key=value"));
}

TEST_F(ConfigTest, ValuesOutOfRangeNameBothEnds) {
  EXPECT_EQ(refusal("[limits]\nmemory_bytes = 4096\n"),
            "2:16: limits.memory_bytes must be between 64MiB and 1TiB, and is 4KiB");
  EXPECT_EQ(refusal("[pool]\ntarget = -1\n"),
            "2:10: pool.target must be between 1 and 64, and is -1");
  EXPECT_THAT(refused({"limits.cpus=1000"}), HasSubstr("between 0.05 and 256, and is 1000"));
  EXPECT_THAT(refused({"limits.memory_bytes=99999999999999TiB"}), HasSubstr("limits.memory_bytes"));
}

TEST_F(ConfigTest, BrokenTomlNamesLineAndColumn) {
  EXPECT_THAT(refusal("[pool]\ntarget = = 3\n"), StartsWith("2:10: "));
  EXPECT_THAT(refusal("[pool]\ntarget = 3\ntarget = 4\n"), StartsWith("3:"));
}

TEST_F(ConfigTest, AFileThatIsNotThereIsNamed) {
  const Result<Config> result = load({.file = "/nonexistent/hutch.toml"});
  ASSERT_FALSE(result);
  EXPECT_EQ(describe(result.error()),
            "cannot open /nonexistent/hutch.toml: No such file or directory");
}

TEST_F(ConfigTest, LimitsThatContradictEachOtherAreRefused) {
  EXPECT_THAT(refused({"limits.memory_bytes=128MiB"}),
              HasSubstr("limits.disk_bytes (256MiB) must not exceed limits.memory_bytes (128MiB)"));
  EXPECT_THAT(refused({"limits.shm_bytes=1GiB"}), HasSubstr("limits.shm_bytes (1GiB)"));
  EXPECT_THAT(refused({"limits.file_bytes=32MiB"}), HasSubstr("limits.files_bytes (16MiB)"));
}

TEST_F(ConfigTest, ThePoolDoesNotGrow) {
  EXPECT_THAT(refused({"pool.ceiling=4", "pool.target=3"}),
              HasSubstr("pool.ceiling (4) must equal pool.target (3)"));
  EXPECT_EQ(with({"pool.ceiling=4"})->pool.target, 4U);
}

TEST_F(ConfigTest, ListenersStayOnLoopback) {
  for (const char* good : {"127.0.0.1:0", "127.9.9.9:1", "[::1]:8700", "localhost:65535"}) {
    EXPECT_EQ(refused({std::string("internal.listen=") + good}), "accepted") << good;
  }
  for (const char* bad : {"0.0.0.0:8700", "[::]:8700", "10.0.0.1:1", "hutch.example:1"}) {
    EXPECT_THAT(refused({std::string("internal.listen=") + bad}),
                HasSubstr("must be a loopback address"))
        << bad;
    EXPECT_THAT(refused({std::string("public.listen=") + bad}), HasSubstr("no keys and no TLS"));
  }
  for (const char* bad : {"8700", ":8700", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "::1:80",
                          "[]:1", "127.0.0.1:-1", "127.0.0.1:80x"}) {
    EXPECT_THAT(refused({std::string("internal.listen=") + bad}), HasSubstr("ADDRESS:PORT")) << bad;
  }
  EXPECT_THAT(refused({"internal.listen=127.0.0.1:8080"}), HasSubstr("another port"));
}

TEST_F(ConfigTest, TextsAreChecked) {
  EXPECT_THAT(refused({"engine=docker"}), HasSubstr("engine must be \"native\""));
  EXPECT_THAT(refused({"image=../x"}), HasSubstr("image must be a name"));
  EXPECT_THAT(refused({"image="}), HasSubstr("image must be a name"));
  EXPECT_THAT(refused({"state_dir=relative"}), HasSubstr("absolute path"));
  EXPECT_THAT(refused({"log.level=loud"}), HasSubstr("log.level must be \"debug\", \"info\""));
  EXPECT_THAT(refused({"server.user=root"}), HasSubstr("must not be root"));
  EXPECT_THAT(refused({"internal.hosts=http://x"}), HasSubstr("without scheme and port"));
}

TEST(Size, SpellingsGoThereAndBack) {
  for (const std::uint64_t bytes : {0ULL, 1ULL, 1023ULL, 1024ULL, 1536ULL, 1ULL << 40U, ~0ULL}) {
    EXPECT_EQ(parse_size(format_size(bytes)), bytes);
  }
  for (const char* bad : {"", "MiB", "-1", "1.5GiB", "1 MiB", "1mib", "1KB", "17000000TiB"}) {
    EXPECT_EQ(parse_size(bad), std::nullopt) << bad;
  }
}

TEST(Reference, TheDocumentInTheTreeIsTheGeneratedOne) {
  std::ifstream file(std::string(HUTCH_SOURCE_DIR) + "/docs/config.md");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), reference_markdown())
      << "run: build/release/hutch docs config > docs/config.md";
}

TEST(StateDir, FollowsTheUserAndTheEnvironment) {
  if (::geteuid() == 0) {
    EXPECT_EQ(default_state_dir(), "/var/lib/hutch");
  } else {
    EXPECT_EQ(default_state_dir().front(), '/');
  }
}

}  // namespace
}  // namespace hutch::config
