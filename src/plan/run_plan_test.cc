#include "plan/run_plan.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/units.h"
#include "plan/host_fixture.h"

namespace hutch::plan {
namespace {

PlanSpec spec_of(bool rootless) {
  return {.memory_bytes = 512_MiB,
          .cpus = 1.5,
          .processes = 128,
          .processes_by_rlimit = rootless,
          .open_files = 1024,
          .disk_bytes = 256_MiB,
          .inodes = 65'536,
          .shm_bytes = 64_MiB,
          .python = "/usr/bin/python3.13",
          .env = {{"LANG", "C.UTF-8"}},
          .home_links = {{".cache/fonts.json", "/opt/image/fonts.json"}}};
}

// Without root on a host that holds memory alone.
RunPlan planned(bool rootless) {
  RunPlan run;
  run.rootless = rootless;
  run.zone_base = "/mnt";
  run.host = {.cpus = {0, 1},
              .open_files_max = 65'536,
              .cpuinfo_block = "model name\t: made up\n",
              .zone_path = rootless ? "/mnt/hutch/zone" : "/run/hutch/zone"};
  run.image = {"python", "0123abcd", rootless ? "/s/images/0123abcd" : "/s/images/0123abcd.erofs",
               !rootless};
  run.cgroups = isolation::CgroupVersion::v2;
  run.uid = 1000;
  run.subordinate = {100'000, 65'536};
  run.first_id = 0x7001'0000;
  run.assumed = {"No other server of root runs."};
  HostFacts facts = rootless ? good_rootless_host() : good_host();
  HostNeeds needs = usual_needs();
  if (rootless) {
    facts.unenforced = {{"cpus", "the controller cpu is not handed down to /g"},
                        {"processes", "the controller pids is not handed down to /g"}};
    needs.waived = {"cpus", "processes"};
  }
  run.findings = {{"memory", FindingVerdict::pass, "8 GiB.", ""},
                  {"swap", FindingVerdict::caution, "There is swap.", "swapoff -a"}};
  run.waived = needs.waived;
  run.not_held = limits_not_held(facts, needs);
  auto plan = make_plan(spec_of(rootless), run.host);
  EXPECT_TRUE(plan);
  if (plan) run.plan = std::move(*plan);
  return run;
}

// UPDATE_GOLDEN=1 writes the file anew.
void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(HUTCH_SOURCE_DIR) + "/tests/plan/" + name;
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream file(path);
  std::stringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(expected.str(), text) << "if this is meant: UPDATE_GOLDEN=1";
}

TEST(RunPlan, OfRootIsPrintedAsWritten) {
  expect_golden("run_by_root.txt", run_plan_text(planned(false)));
}

TEST(RunPlan, WithoutRootIsPrintedAsWritten) {
  expect_golden("run_without_root.txt", run_plan_text(planned(true)));
}

TEST(RunPlan, AsJsonHasEveryDecision) {
  RunPlan run = planned(true);
  run.findings = judge(good_host(), usual_needs());
  const auto root = boost::json::parse(run_plan_json(run)).as_object();
  for (const char* key : {"argv",
                          "assumed",
                          "cgroup",
                          "cgroup_files",
                          "courier",
                          "cpus",
                          "cpus_shown",
                          "environment",
                          "execute",
                          "figures",
                          "filter_instructions",
                          "filters",
                          "fit",
                          "host",
                          "id_maps",
                          "image",
                          "init",
                          "namespaces",
                          "not_held",
                          "program",
                          "rootless",
                          "template",
                          "waived",
                          "zone"}) {
    EXPECT_TRUE(root.contains(key)) << key;
  }
  EXPECT_TRUE(root.at("fit").as_bool());
  const auto& calls = root.at("filters").at("program").at("calls").as_array();
  EXPECT_GT(calls.size(), 300U);
  EXPECT_EQ(calls.size(), root.at("filters").at("init").at("calls").as_array().size());
  EXPECT_EQ(root.at("host").as_array().size(), run.findings.size());
}

TEST(RunPlan, WritesOnlyTheGroupFilesOfLimitsThatAreHeld) {
  RunPlan run = planned(true);
  const std::vector<CgroupFile> memory{
      {"memory.max", "536870912"}, {"memory.swap.max", "0", true}, {"memory.oom.group", "1"}};
  EXPECT_EQ(cgroup_files(run), memory);
  run.not_held.clear();
  run.cgroups = isolation::CgroupVersion::v1;
  EXPECT_EQ(cgroup_files(run).size(), 6U);
  run.cgroups = isolation::CgroupVersion::none;
  EXPECT_TRUE(cgroup_files(run).empty());
}

TEST(RunPlan, ALimitThatNoGroupHoldsIsHeldByRlimitWhereThatIsPossible) {
  const std::string text = run_plan_text(planned(true));
  EXPECT_NE(text.find("nproc 128, at most 128"), std::string::npos);
  EXPECT_NE(text.find("NOT HELD here: cpus and processes"), std::string::npos);
}

}  // namespace
}  // namespace hutch::plan
