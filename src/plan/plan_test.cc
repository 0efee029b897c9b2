#include "plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "isolation/raw_action.h"
#include "plan/launcher_wire.h"

namespace hutch::plan {
namespace {

using isolation::Action;
using isolation::Op;

PlanSpec default_spec() {
  PlanSpec spec;
  spec.memory_bytes = 512ULL << 20U;
  spec.cpus = 1.0;
  spec.processes = 128;
  spec.open_files = 1024;
  spec.disk_bytes = 256ULL << 20U;
  spec.inodes = 65536;
  spec.shm_bytes = 64ULL << 20U;
  spec.python = "/usr/bin/python3.13";
  spec.env = {{"LANG", "C.UTF-8"}, {"PATH", "/usr/bin:/bin"}, {"TZ", "UTC"}};
  spec.home_links = {{".cache/matplotlib/fontlist.json", "/opt/image/mpl-cache/fontlist.json"}};
  return spec;
}

PlanHost two_cpus() {
  PlanHost host;
  host.cpus = {0, 1};
  host.open_files_max = 1'048'576;
  host.cpuinfo_block = "model name\t: Some Processor\n";
  host.zone_path = "/run/hutch/zone";
  return host;
}

Plan planned(const PlanSpec& spec, const PlanHost& host) {
  auto plan = make_plan(spec, host);
  EXPECT_TRUE(plan);
  return plan ? std::move(*plan) : Plan{};
}

std::string golden_path(const std::string& name) {
  return std::string(HUTCH_SOURCE_DIR) + "/tests/plan/" + name + ".json";
}

// UPDATE_GOLDEN=1 writes the file anew.
void expect_golden(const std::string& name, const std::string& text) {
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(golden_path(name)) << text;
  std::ifstream file(golden_path(name));
  std::stringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(expected.str(), text) << "if this is meant: UPDATE_GOLDEN=1";
}

std::size_t place(const std::vector<Action>& list, Op op) {
  const auto found =
      std::find_if(list.begin(), list.end(), [op](const Action& a) { return a.op == op; });
  EXPECT_NE(found, list.end()) << isolation::op_name(op);
  return static_cast<std::size_t>(found - list.begin());
}

TEST(Plan, OfTheDefaultsIsAsWritten) {
  expect_golden("default", plan_json(planned(default_spec(), two_cpus())));
}

TEST(Plan, OfOtherLimitsIsAsWritten) {
  PlanSpec spec = default_spec();
  spec.memory_bytes = 64ULL << 20U;
  spec.cpus = 1.5;
  spec.processes = 7;
  spec.disk_bytes = 1 << 20U;
  spec.inodes = 100;
  spec.home_links.clear();
  PlanHost host = two_cpus();
  host.open_files_max = 512;
  expect_golden("small", plan_json(planned(spec, host)));
}

TEST(Plan, GivesPrivilegesUpInTheOnlyOrderThatWorks) {
  const Plan plan = planned(default_spec(), two_cpus());
  for (const auto* list : {&plan.program, &plan.courier, &plan.init}) {
    const bool init = list == &plan.init;
    const std::size_t bounding = place(*list, Op::drop_bounding_set);
    const std::size_t capabilities = place(*list, Op::drop_capabilities);
    const std::size_t filter = place(*list, Op::install_filter);
    EXPECT_LT(bounding, capabilities);
    EXPECT_LT(capabilities, place(*list, Op::no_new_privs));
    EXPECT_LT(place(*list, Op::no_new_privs), filter);
    EXPECT_EQ(filter, list->size() - 1) << "nothing runs between the filter and foreign code";
    if (!init) {
      EXPECT_LT(place(*list, Op::await_go), place(*list, Op::join_namespaces));
    }
  }
}

TEST(Plan, JoinsItsCgroupBeforeAnythingIsCharged) {
  const Plan plan = planned(default_spec(), two_cpus());
  EXPECT_EQ(plan.init[0].op, Op::session);
  EXPECT_EQ(plan.init[1].op, Op::await_go);
  EXPECT_EQ(plan.program[0].op, Op::session);
  EXPECT_EQ(plan.program[1].op, Op::await_go);
}

TEST(Plan, WritesUserLimitsWhileProcSysIsStillWritable) {
  const Plan plan = planned(default_spec(), two_cpus());
  EXPECT_LT(place(plan.init, Op::write_control), place(plan.init, Op::bind_readonly));
}

TEST(Plan, ShowsAsManyProcessorsAsTheLimitRoundsUpTo) {
  PlanSpec spec = default_spec();
  spec.cpus = 1.2;
  EXPECT_EQ(planned(spec, two_cpus()).cpus_shown, 2U);
  spec.cpus = 64;
  EXPECT_EQ(planned(spec, two_cpus()).cpus_shown, 2U);
  spec.cpus = 0.1;
  EXPECT_EQ(planned(spec, two_cpus()).cpus_shown, 1U);
}

TEST(Plan, SpreadsSlotsOverTheProcessors) {
  PlanHost host = two_cpus();
  host.cpus = {0, 1, 4, 5};
  EXPECT_EQ(slot_cpus(host, 1, 0), std::vector<std::uint32_t>{0});
  EXPECT_EQ(slot_cpus(host, 1, 3), std::vector<std::uint32_t>{5});
  EXPECT_EQ(slot_cpus(host, 1, 4), std::vector<std::uint32_t>{0});
  EXPECT_EQ(slot_cpus(host, 3, 1), (std::vector<std::uint32_t>{0, 1, 5}));
}

TEST(Plan, RefusesAHostWithoutAProcessor) {
  PlanHost host = two_cpus();
  host.cpus.clear();
  const auto plan = make_plan(default_spec(), host);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::unsupported_host);
}

TEST(PlanBlock, ReadsBackAsItWasWritten) {
  const Plan plan = planned(default_spec(), two_cpus());
  const std::string block = isolation::encode_actions(plan.init);
  std::size_t offset = 0;
  std::size_t count = 0;
  isolation::RawAction action;
  while (isolation::next_action(block.data(), block.size(), &offset, &action)) {
    ASSERT_LT(count, plan.init.size());
    EXPECT_EQ(action.step, plan.init[count].step);
    EXPECT_EQ(action.op, plan.init[count].op);
    EXPECT_EQ(action.a, plan.init[count].a);
    EXPECT_STREQ(action.s, plan.init[count].s.c_str());
    EXPECT_STREQ(action.t, plan.init[count].t.c_str());
    ++count;
  }
  EXPECT_EQ(count, plan.init.size());
  EXPECT_EQ(offset, block.size());
}

TEST(PlanBlock, RefusesABlockThatIsCutShort) {
  const std::string block = isolation::encode_actions(planned(default_spec(), two_cpus()).init);
  for (const std::size_t size : {std::size_t{0}, std::size_t{39}, std::size_t{41}}) {
    std::size_t offset = 0;
    isolation::RawAction action;
    EXPECT_FALSE(isolation::next_action(block.data(), size, &offset, &action));
  }
}

}  // namespace
}  // namespace hutch::plan
