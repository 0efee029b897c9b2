#include "isolation/cgroup_layout.h"

#include <gtest/gtest.h>

namespace hutch::isolation {
namespace {

constexpr std::string_view kHybridMounts =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
    "39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
    "40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

TEST(CgroupLayout, FindsOurGroupInEachHierarchy) {
  const CgroupLayout layout = parse_cgroup_layout(kHybridMounts,
                                                  "9:name=systemd:/\n"
                                                  "8:pids:/\n"
                                                  "4:memory:/apps/one\n"
                                                  "1:cpu,cpuacct:/\n"
                                                  "0::/\n");
  EXPECT_EQ(layout.version, CgroupVersion::v1);
  EXPECT_TRUE(layout.hybrid);
  EXPECT_EQ(layout.v1.at("memory"), "/sys/fs/cgroup/memory/apps/one");
  EXPECT_EQ(layout.v1.at("pids"), "/sys/fs/cgroup/pids");
  EXPECT_EQ(layout.v1.at("cpu"), layout.v1.at("cpuacct"));
  EXPECT_FALSE(layout.v1.contains("name=systemd"));
  EXPECT_EQ(layout.v2, "/sys/fs/cgroup/unified");
  EXPECT_EQ(layout_text(layout), "v1 beside v2");
}

TEST(CgroupLayout, FindsTheUnifiedHierarchy) {
  const CgroupLayout layout =
      parse_cgroup_layout("30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n",
                          "0::/system.slice/hutch.service\n");
  EXPECT_EQ(layout.version, CgroupVersion::v2);
  EXPECT_EQ(layout.v2, "/sys/fs/cgroup/system.slice/hutch.service");
  EXPECT_EQ(layout_text(layout), "v2");
}

TEST(CgroupLayout, TakesTheUnifiedOneWhenItHasTheMemory) {
  const CgroupLayout layout = parse_cgroup_layout(
      "40 31 0:37 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n"
      "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
      "2:freezer:/\n0::/\n");
  EXPECT_EQ(layout.version, CgroupVersion::v2);
}

TEST(CgroupLayout, ReadsMountsOfAPartOfAHierarchy) {
  constexpr std::string_view kMounts =
      "35 31 0:32 /docker/abc /sys/fs/cgroup/my\\040memory rw - cgroup cgroup rw,memory\n";
  EXPECT_EQ(parse_cgroup_layout(kMounts, "4:memory:/docker/abc/inner\n").v1.at("memory"),
            "/sys/fs/cgroup/my memory/inner");
  EXPECT_EQ(parse_cgroup_layout(kMounts, "4:memory:/docker/abc\n").v1.at("memory"),
            "/sys/fs/cgroup/my memory");
  // What the mount does not show is not ours to use.
  EXPECT_TRUE(parse_cgroup_layout(kMounts, "4:memory:/docker/abcdef\n").v1.empty());
  EXPECT_TRUE(parse_cgroup_layout(kMounts, "4:memory:/../other\n").v1.empty());
  EXPECT_EQ(parse_cgroup_layout(kMounts, "").version, CgroupVersion::none);
}

TEST(CgroupLayout, IgnoresLinesThatAreNone) {
  EXPECT_EQ(parse_cgroup_layout("cgroup\n- cgroup\n\n1 2 3 / /x rw -\n", "x\n::\n4:memory\n"),
            CgroupLayout{});
}

}  // namespace
}  // namespace hutch::isolation
