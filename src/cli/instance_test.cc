#include "cli/instance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace hutch::cli {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

TEST(Instance, ReadsWhatTheWardenWrites) {
  const Instance instance = parse_instance(R"({
    "cgroup_prefixes": ["/sys/fs/cgroup/pids/hutch-a", "/sys/fs/cgroup/memory/hutch-a"],
    "uid_range": [1000000, 65536], "server_uid": 7, "server_pid": 1, "warden_pid": 2,
    "launcher_pid": 3, "anchor_pid": 4})")
                                .value();
  EXPECT_EQ(instance.cgroup_prefixes.size(), 2U);
  EXPECT_EQ(instance.uid_first, 1000000U);
  EXPECT_EQ(instance.uid_count, 65536U);
  EXPECT_EQ(instance.anchor_pid, 4);
}

TEST(Instance, NamesStayTheSameAndDiffer) {
  EXPECT_EQ(instance_name("/var/lib/hutch"), instance_name("/var/lib/hutch"));
  EXPECT_NE(instance_name("/var/lib/hutch"), instance_name("/var/lib/hutch2"));
  EXPECT_THAT(cgroup_prefix("/var/lib/hutch"), testing::MatchesRegex("hutch-[0-9a-f]+"));
}

TEST(Instance, DamagedFilesAreErrors) {
  EXPECT_FALSE(parse_instance("{"));
  EXPECT_FALSE(parse_instance("[]"));
  EXPECT_EQ(parse_instance("{}")->uid_count, 0U);
  EXPECT_EQ(read_instance("/nonexistent").error().code, ErrorCode::not_found);
}

TEST(Instance, CountsProcessesNamespacesAndCgroups) {
  const fs::path root = testing::TempDir() + "hutch_instance_" + std::to_string(::getpid());
  const auto process = [&](int pid, int uid, const char* space) {
    const fs::path here = root / "proc" / std::to_string(pid);
    fs::create_directories(here / "ns");
    std::ofstream(here / "status") << "Name:\tx\nUid:\t" << uid << "\t1\t1\t1\n";
    fs::create_symlink(space, here / "ns" / "net");
  };
  process(10, 999, "net:[1]");
  process(11, 1000, "net:[2]");
  process(12, 1001, "net:[2]");
  process(13, 1002, "net:[3]");
  fs::create_directories(root / "cg" / "hutch-a" / "slot1");
  fs::create_directories(root / "cg" / "other");
  const Instance instance{
      .cgroup_prefixes = {(root / "cg" / "hutch-a").string()}, .uid_first = 1000, .uid_count = 2};
  const Holdings holdings = count_holdings(instance, (root / "proc").string());
  EXPECT_THAT(holdings.processes, ElementsAre(11, 12));
  EXPECT_THAT(holdings.network_namespaces, ElementsAre("net:[2]"));
  EXPECT_THAT(holdings.cgroups, ElementsAre((root / "cg" / "hutch-a").string(),
                                            (root / "cg" / "hutch-a" / "slot1").string()));
  fs::remove_all(root);
}

}  // namespace
}  // namespace hutch::cli
