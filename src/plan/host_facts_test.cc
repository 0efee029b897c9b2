// Readers, held against hosts that are directories.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "plan/host_fixture.h"
#include "plan/host_read.h"

namespace hutch::plan {
namespace {

namespace fs = std::filesystem;
using enum FindingVerdict;

// A made-up host: a directory with the files that are read. At first a server of root on Debian 12.
class MadeUpHost : public testing::Test {
 protected:
  MadeUpHost() {
    std::string pattern = testing::TempDir() + "/host-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    make_kernel();
    make_user();
    put("/proc/meminfo",
        "MemTotal:        8000000 kB\nMemAvailable:    4000000 kB\nSwapTotal:          0 kB\n");
    put("/proc/self/cgroup", "0::/system.slice/hutch.service\n");
    mounts("");
    group("/system.slice/hutch.service", "cpu memory pids", "", "42\n");
    put(kOwn + "/memory.swap.max", "max\n");
    fs::create_directories(root_ + "/dev");
    for (const char* device : {"null", "zero", "full", "random", "urandom"}) {
      fs::create_symlink(std::string("/dev/") + device, root_ + "/dev/" + device);
    }
  }
  ~MadeUpHost() override { fs::remove_all(root_); }

  void make_kernel() {
    put("/proc/sys/kernel/osrelease", "6.1.0-28-amd64\n");
    put("/proc/sys/kernel/arch", "x86_64\n");
    put("/proc/version", "Linux version 6.1.0-28-amd64 (debian-kernel@lists.debian.org) #1 SMP\n");
    for (const char* kind : {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"}) {
      put(std::string("/proc/self/ns/") + kind, "");
      put(std::string("/proc/sys/user/max_") + kind + "_namespaces", "31000\n");
    }
    put("/proc/sys/kernel/seccomp/actions_avail", "kill_process kill_thread trap errno allow\n");
    put("/proc/sys/kernel/keys/maxkeys", "200\n");
    put("/proc/sys/kernel/core_pattern", "core\n");
    put("/proc/sys/vm/overcommit_memory", "0\n");
    put("/proc/sys/vm/max_map_count", "65530\n");
    put("/proc/sys/kernel/pid_max", "32768\n");
    put("/proc/sys/kernel/threads-max", "127000\n");
    put("/proc/sys/fs/inotify/max_user_instances", "128\n");
    put("/proc/filesystems", "nodev\tproc\n\text4\n\terofs\n");
    put("/run/systemd/system/x", "");
  }

  void make_user() {
    status("0", "000001ffffffffff", "0", "0");
    put("/proc/self/uid_map", "         0          0 4294967295\n");
    put("/proc/self/gid_map", "         0          0 4294967295\n");
    limits("63000", "1048576");
    put("/etc/passwd",
        "root:x:0:0:root:/root:/bin/bash\nann:x:1000:1000::/home/ann:/bin/sh\n"
        "bob::1001:1001::/home/bob:/bin/sh\n");
    put("/etc/subuid", "ann:100000:65536\n");
    put("/etc/subgid", "ann:100000:65536\n");
    tool("newuidmap", 04755);
    tool("newgidmap", 04755);
    tool("mkfs.erofs", 0755);
    tool("fsck.erofs", 0755);
  }

  void put(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  void remove(const std::string& path) { fs::remove_all(root_ + path); }

  void status(const std::string& uid, const std::string& capabilities,
              const std::string& no_new_privs, const std::string& seccomp) {
    put("/proc/self/status", "Name:\thutch\nPid:\t42\nUid:\t" + uid + "\t" + uid + "\t" + uid +
                                 "\t" + uid + "\nCapEff:\t" + capabilities + "\nNoNewPrivs:\t" +
                                 no_new_privs + "\nSeccomp:\t" + seccomp +
                                 "\nCpus_allowed_list:\t0-1,4\n");
  }
  void limits(const std::string& processes, const std::string& files) {
    put("/proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max processes             " +
            processes + "                " + processes +
            "                processes \n"
            "Max open files            1024                 " +
            files + "                files\n" + more_limits_);
  }
  void mounts(const std::string& more, const std::string& proc = "rw,nosuid") {
    put("/proc/self/mountinfo", "22 27 0:21 / /proc " + proc +
                                    " - proc proc rw\n"
                                    "24 22 0:50 / /proc/sys/fs/binfmt_misc rw - binfmt_misc b rw\n"
                                    "30 27 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n" +
                                    more);
  }
  void group(const std::string& path, const std::string& controllers,
             const std::string& handed_down, const std::string& members) {
    const std::string directory = "/sys/fs/cgroup" + path;
    put(directory + "/cgroup.type", "domain\n");
    put(directory + "/cgroup.controllers", controllers + "\n");
    put(directory + "/cgroup.subtree_control", handed_down + "\n");
    put(directory + "/cgroup.procs", members);
    put(directory + "/memory.max", "max\n");
    put(directory + "/pids.max", "max\n");
  }
  void tool(const std::string& name, mode_t mode) {
    put("/usr/bin/" + name, "");
    ::chmod((root_ + "/usr/bin/" + name).c_str(), mode);
  }

  HostFacts facts() { return gather_host_facts(root_); }
  void expect(std::string_view name, FindingVerdict verdict, std::string_view says = "") {
    const Finding one = finding(facts(), name);
    EXPECT_EQ(verdict_name(one.verdict), verdict_name(verdict)) << name << ": " << one.meaning;
    const std::string text = one.meaning + " " + one.remedy;
    EXPECT_NE(text.find(says), std::string::npos) << name << ": " << text;
  }
  void expect_fit() {
    for (const Finding& one : judge(facts(), usual_needs())) {
      const bool is_fine = one.verdict == pass || one.verdict == skipped;
      EXPECT_TRUE(is_fine) << one.name << ": " << one.meaning;
    }
  }

  const std::string kOwn = "/sys/fs/cgroup/system.slice/hutch.service";
  std::string root_;
  std::string more_limits_ =
      "Max stack size            8388608              unlimited            bytes     \n"
      "Max locked memory         65536                8388608              bytes     \n"
      "Max pending signals       63000                63000                signals   \n"
      "Max msgqueue size         819200               819200               bytes     \n";
};

TEST_F(MadeUpHost, OfRootIsFit) {
  expect_fit();
  EXPECT_EQ(facts().kernel_minor, 1U);
  EXPECT_EQ(facts().user.capabilities, 0x1ffffffffffU);
  EXPECT_EQ(facts().cpus, (std::vector<std::uint32_t>{0, 1, 4}));
  EXPECT_EQ(facts().uid_range_first, 0x7001'0000U);
}

TEST_F(MadeUpHost, OfAnOrdinaryUserIsFit) {
  status("1000", "0", "0", "0");
  const std::string scope = "/user.slice/user-1000.slice/user@1000.service/app.slice/h.scope";
  put("/proc/self/cgroup", "0::" + scope + "\n");
  group(scope, "cpu memory pids", "", "42\n");
  expect_fit();
  EXPECT_EQ(facts().user.name, "ann");
}

TEST_F(MadeUpHost, Kernels) {
  put("/proc/sys/kernel/osrelease", "5.10.0-30-amd64\n");
  expect("kernel", fail, "5.10.0-30-amd64 is older");
  put("/proc/sys/kernel/osrelease", "4.4.0\n");
  put("/proc/version", "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016\n");
  expect("kernel", fail, "gVisor");
  put("/proc/version", "Linux version 4.19.0-gvisor #1 SMP\n");
  expect("kernel", fail, "gVisor");
  put("/proc/version", "Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com)\n");
  put("/proc/sys/kernel/osrelease", "4.4.0-19041-Microsoft\n");
  expect("kernel", fail, "WSL 1");
  put("/proc/sys/kernel/osrelease", "5.15.153.1-microsoft-standard-WSL2\n");
  expect("kernel", pass);
  expect("container", caution, "WSL 2");
  put("/proc/sys/kernel/arch", "i686\n");
  expect("machine", fail, "i686");
  remove("/proc/sys/kernel/arch");
  expect("machine", skipped);
}

TEST_F(MadeUpHost, Containers) {
  put("/.dockerenv", "");
  expect("container", caution, "docker");
  remove("/.dockerenv");
  put("/run/.containerenv", "");
  expect("container", caution, "podman");
  remove("/run/.containerenv");
  put("/run/systemd/container", "systemd-nspawn\n");
  expect("container", caution, "systemd-nspawn");
  remove("/run/systemd/container");
  put("/proc/1/environ", std::string("TERM=linux\0container=lxc\0", 25));
  expect("container", caution, "lxc");
  remove("/proc/1/environ");
  put("/proc/1/cgroup", "3:memory:/kubepods/besteffort/pod7\n");
  expect("container", caution, "kubernetes");
  // The mark of a container in a file system that is booted by itself now.
  put("/.dockerenv", "");
  remove("/proc/self/ns/pid");
  fs::create_symlink("pid:[4026531836]", root_ + "/proc/self/ns/pid");
  expect("container", caution, "docker");
  remove("/proc/self/ns/cgroup");
  fs::create_symlink("cgroup:[4026531835]", root_ + "/proc/self/ns/cgroup");
  expect("container", pass);
}

TEST_F(MadeUpHost, DockerWithoutPrivilege) {
  put("/.dockerenv", "");
  status("0", "00000000a80425fb", "0", "2");
  mounts(
      "40 22 0:60 / /proc/kcore rw - tmpfs tmpfs rw\n"
      "41 22 0:61 / /proc/sys ro - proc proc rw\n");
  expect("privilege", fail, "CAP_SYS_ADMIN");
  expect("proc", fail, "/proc/kcore and others");
  mounts("", "ro,nosuid");
  expect("proc", fail, "read-only");
  remove("/proc/sys/kernel/keys");
  expect("keyrings", fail, "container forbids");
}

TEST_F(MadeUpHost, Namespaces) {
  put("/proc/sys/user/max_net_namespaces", "5\n");
  put("/proc/sys/user/max_mnt_namespaces", "20\n");
  expect("namespace_limits", fail, "user.max_mnt_namespaces=15000 user.max_net_namespaces=15000");
  put("/proc/sys/user/max_net_namespaces", "20\n");
  expect("namespace_limits", caution);
  put("/proc/sys/user/max_user_namespaces", "0\n");
  expect("user_namespaces", fail, "switched off");
  remove("/proc/self/ns/user");
  expect("user_namespaces", fail, "CONFIG_USER_NS");
  remove("/proc/self/ns/cgroup");
  expect("namespaces", fail, "cgroup");
}

TEST_F(MadeUpHost, UbuntuWithItsRestrictionOfUserNamespaces) {
  status("1000", "0", "0", "0");
  put("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
  put("/proc/self/attr/apparmor/current", "unconfined\n");
  expect("user_namespaces", fail, "AppArmor");
  put("/proc/self/attr/apparmor/current", "hutch (unconfined)\n");
  expect("user_namespaces", pass);
  put("/proc/sys/kernel/unprivileged_userns_clone", "0\n");
  expect("user_namespaces", fail, "kernel.unprivileged_userns_clone=1");
}

TEST_F(MadeUpHost, SubordinateIds) {
  status("1001", "0", "0", "0");
  expect("subordinate_ids", fail, "echo 'bob:165536:65536' | sudo tee -a /etc/subuid /etc/subgid");
  put("/etc/subuid", "ann:100000:65536\nbob:165536:1000\n");
  put("/etc/subgid", "1001:300000:65536\n");
  expect("subordinate_ids", fail, "echo 'bob:166536:65536' | sudo tee -a /etc/subuid");
  put("/etc/subuid", "ann:100000:65536\nbob:165536:65536\n");
  expect("subordinate_ids", pass);
  put("/etc/subuid", "ann:100000:65536\nbob:160000:65536\n");
  expect("subordinate_ids", caution, "also those of ann");
  put("/etc/subuid", "bob:1000:65536\n");
  expect("subordinate_ids", caution, "the account ann");
  put("/etc/subuid", "");
  put("/etc/nsswitch.conf", "passwd: files\nsubid: sss\n");
  expect("subordinate_ids", caution, "elsewhere");
}

TEST_F(MadeUpHost, RootOfAUserNamespace) {
  put("/proc/self/uid_map", "0 1001 1\n1 165536 65536\n");
  put("/proc/self/gid_map", "0 1001 1\n1 165536 65536\n");
  expect("subordinate_ids", pass, "65537");
  expect("privilege", pass, "Rootless");
  put("/proc/self/uid_map", "0 1001 1\n");
  expect("subordinate_ids", fail, "has 1 ids");
}

TEST_F(MadeUpHost, ToolsForIdMaps) {
  status("1000", "0", "0", "0");
  expect("id_map_tools", pass);
  tool("newgidmap", 0755);
  expect("id_map_tools", fail, "chmod u+s /usr/bin/newgidmap");
  remove("/usr/bin/newuidmap");
  expect("id_map_tools", fail, "apt-get install uidmap");
  tool("newuidmap", 04755);
  tool("newgidmap", 04755);
  status("1000", "0", "1", "0");
  expect("id_map_tools", fail, "no_new_privs");
}

TEST_F(MadeUpHost, RangesOfUserIdsThatAreTaken) {
  put("/etc/subuid", "ann:1879113728:65537\n");
  EXPECT_EQ(facts().uid_ranges_free, 254U);
  EXPECT_EQ(facts().uid_range_first, 0x7001'0000U + 2 * 65'536);
  put("/etc/subuid", "ann:1879113728:16777216\n");
  expect("uid_ranges", fail);
}

TEST_F(MadeUpHost, GroupsOfVersion2) {
  group("/system.slice/hutch.service", "memory pids", "", "42\n");
  expect("cgroups", fail, "cpus: the controller cpu is not handed down");
  group("/system.slice/hutch.service", "cpu memory pids", "", "41\n42\n");
  expect("cgroups", fail, "holds processes of others");
  group("/system.slice/hutch.service", "cpu memory pids", "cpu memory pids", "41\n42\n");
  expect("cgroups", pass);
  put("/proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable: 4000000 kB\nSwapTotal: 9 kB\n");
  expect("cgroups", pass);
  expect("swap", pass, "none of it");
  remove(kOwn + "/memory.swap.max");
  expect("cgroups", fail, "swap");
  expect("swap", caution);
  put(kOwn + "/pids.max", "100\n");
  expect("pid_max", caution, "TasksMax");
  remove("/proc/self/cgroup");
  expect("cgroups", fail, "no control groups are mounted");
}

TEST_F(MadeUpHost, GroupsOfVersion1BesideVersion2) {
  const std::string mounted =
      "31 27 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
      "32 27 0:28 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n";
  mounts(mounted + "33 27 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
  put("/proc/self/cgroup", "4:cpu,cpuacct:/\n3:pids:/\n2:memory:/\n0::/\n");
  for (const char* name : {"memory", "pids", "cpu"}) {
    put(std::string("/sys/fs/cgroup/") + name + "/cgroup.procs", "42\n");
  }
  put("/sys/fs/cgroup/cgroup.controllers", "hugetlb\n");
  expect("cgroups", pass, "v1 beside v2");
  expect("inotify", skipped);
  put("/proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable: 4000000 kB\nSwapTotal: 9 kB\n");
  expect("cgroups", fail, "swapoff -a");
  put("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes", "1\n");
  expect("cgroups", pass);
  mounts(mounted);
  expect("cgroups", fail, "cpus: the controller cpu is not mounted");
}

TEST_F(MadeUpHost, WhatSystemdHandsToAUser) {
  status("1000", "0", "0", "0");
  group("/user.slice/user-1000.slice/user@1000.service", "memory pids", "", "");
  group("/system.slice/hutch.service", "memory pids", "", "42\n");
  expect("cgroups", fail, "delegate.conf");
  group("/user.slice/user-1000.slice/user@1000.service", "cpu memory pids", "", "");
  expect("cgroups", fail, "systemd-run --user --scope");
}

TEST_F(MadeUpHost, AsAnotherUserWouldFindIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "gives a directory away";
  const std::string service = "/user.slice/user-1000.slice/user@1000.service";
  group(service, "cpu memory pids", "", "");
  auto ann = gather_host_facts_for(root_, "ann");
  ASSERT_TRUE(ann);
  EXPECT_EQ(finding(*ann, "cgroups").verdict, fail);
  EXPECT_EQ(::chown((root_ + "/sys/fs/cgroup" + service).c_str(), 1000, 1000), 0);
  ann = gather_host_facts_for(root_, "ann");
  ASSERT_TRUE(ann);
  EXPECT_TRUE(refuse_failed(judge(*ann, usual_needs())));
  EXPECT_TRUE(finding(*ann, "privilege").meaning.starts_with("Rootless"));
  const auto bob = gather_host_facts_for(root_, "bob");
  ASSERT_TRUE(bob);
  EXPECT_EQ(finding(*bob, "subordinate_ids").verdict, fail);
  EXPECT_FALSE(gather_host_facts_for(root_, "eve"));
  EXPECT_FALSE(gather_host_facts_for(root_, "root"));
}

TEST_F(MadeUpHost, Room) {
  limits("100", "48");
  expect("open_files", fail, "may open 48 files");
  limits("100", "512");
  expect("open_files", caution, "full use takes 608");
  more_limits_ = "Max stack size            8388608              1000                 bytes     \n";
  limits("100", "512");
  expect("resource_limits", fail, "stack (1000, and a program gets 8388608)");
  status("1000", "0", "0", "0");
  expect("process_limit", caution, "have 100 processes");
  limits("unlimited", "unlimited");
  expect("process_limit", pass);
  expect("open_files", pass);
  put("/proc/sys/vm/overcommit_memory", "2\n");
  expect("overcommit", caution);
  put("/proc/sys/kernel/pid_max", "1000\n");
  expect("pid_max", caution, "kernel.pid_max");
  put("/proc/sys/kernel/pid_max", "32768\n");
  put("/proc/sys/kernel/threads-max", "1000\n");
  expect("pid_max", caution, "threads-max");
  put("/proc/sys/vm/max_map_count", "1024\n");
  expect("map_count", caution);
  put("/proc/sys/fs/inotify/max_user_instances", "2\n");
  expect("inotify", fail);
  put("/proc/self/status", "Uid:\t0\t0\t0\t0\n");
  expect("cpus", fail);
  expect("memory_killer", caution);
}

TEST_F(MadeUpHost, Switches) {
  put("/proc/sys/kernel/core_pattern", "|/usr/share/apport/apport %p %s\n");
  expect("core_dumps", caution, "starts /usr/share/apport/apport as root");
  put("/sys/fs/selinux/enforce", "1");
  expect("selinux", caution);
  put("/proc/sys/kernel/seccomp/actions_avail", "kill_thread errno allow\n");
  expect("seccomp", fail);
  put("/proc/filesystems", "\text4\n");
  expect("erofs", caution);
  put("/lib/modules/6.1.0-28-amd64/modules.dep", "kernel/fs/erofs/erofs.ko.xz: kernel/lib\n");
  expect("erofs", pass);
  remove("/usr/bin/mkfs.erofs");
  expect("image_tools", caution);
  put("/run/hutch", "a file");
  expect("run_directory", fail, "is no directory");
  remove("/run");
  expect("run_directory", fail, "cannot be written");
  status("1000", "0", "0", "0");
  remove("/dev/full");
  put("/dev/full", "a file");
  expect("devices", fail, "mknod -m 666 /dev/full c 1 7");
  remove("/usr/bin/fsck.erofs");
  expect("image_tools", caution);
}

TEST_F(MadeUpHost, MemoryIsBoundedByItsOwnGroup) {
  put(kOwn + "/memory.max", "1073741824\n");
  put(kOwn + "/memory.current", "800000000\n");
  put(kOwn + "/memory.stat", "anon 1\ninactive_file 300000000\n");
  EXPECT_EQ(facts().memory_bytes, 1_GiB);
  EXPECT_EQ(facts().memory_available_bytes, 1_GiB - 500000000);
  expect("memory", caution, "pool.target=1");
  put(kOwn + "/memory.max", "100000000\n");
  expect("memory", fail, "95 MiB in all");
  put(kOwn + "/memory.max", "max\n");
  EXPECT_EQ(facts().memory_bytes, 8000000_KiB);
}

TEST(LookAtImages, SeesWhereProgramsCannotStart) {
  HostFacts facts;
  look_at_images("/proc/self/not/there", facts);  // /proc is mounted noexec on most hosts
  EXPECT_EQ(facts.images_directory, "/proc/self/not/there");
  look_at_images("/not-there-at-all/images", facts);
  EXPECT_FALSE(facts.images_noexec);
}

TEST(GatherHostFacts, ReadsThisMachineAndSurvivesAnEmptyOne) {
  const HostFacts here = gather_host_facts("");
  EXPECT_FALSE(here.kernel_release.empty());
  EXPECT_GE(here.kernel_major, 5U);
  EXPECT_FALSE(here.cpus.empty());
  EXPECT_GT(here.memory_bytes, 0U);
  EXPECT_GT(here.user.open_files_max, 0U);
  EXPECT_TRUE(here.devices_missing.empty());
  const HostFacts nothing = gather_host_facts("/nonexistent");
  EXPECT_EQ(nothing.unenforced.size(), 3U);
  EXPECT_FALSE(refuse_failed(judge(nothing, usual_needs())));
}

}  // namespace
}  // namespace hutch::plan
