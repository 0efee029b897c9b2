#include "service/host_memory.h"

#include <gtest/gtest.h>

namespace hutch::service {
namespace {

TEST(HostMemory, ReadsTheTwoFigures) {
  const auto memory = parse_meminfo(
      "MemTotal:       24683404 kB\nMemFree:         1000000 kB\nMemAvailable:   20000000 kB\n");
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->total_bytes, 24683404ULL * 1024);
  EXPECT_EQ(memory->available_bytes, 20000000ULL * 1024);
}

TEST(HostMemory, SaysWhenAFigureIsMissing) {
  EXPECT_FALSE(parse_meminfo("MemTotal: 1 kB\n"));
  EXPECT_FALSE(parse_meminfo("MemTotal: x kB\nMemAvailable: 1 kB\n"));
  EXPECT_FALSE(parse_meminfo(""));
}

TEST(HostMemory, ThisHostHasSome) {
  const HostMemory memory = read_host_memory();
  EXPECT_GT(memory.available_bytes, 0U);
  EXPECT_LE(memory.available_bytes, memory.total_bytes);
}

}  // namespace
}  // namespace hutch::service
