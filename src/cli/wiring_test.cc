#include "cli/wiring.h"

#include <gtest/gtest.h>

namespace hutch::cli {
namespace {

TEST(Wiring, TheWardenGetsLimitsImageAndInstance) {
  config::Config config;
  config.state_dir = "/s";
  config.limits.memory_bytes = 1_GiB;
  config.limits.cpus = 2.5;
  config.testing.fail_step = "pivot";
  image::Image image{.name = "python",
                     .digest = "01ff" + std::string(60, '0'),
                     .path = "/s/images/x.erofs",
                     .is_erofs = true,
                     .config = {}};
  image.config.python = "/usr/bin/python3";
  image.config.home_links = {{.path = ".cache", .target = "/opt/cache"}};
  const warden::WardenOptions options = warden_options(config, image, {.uid = 7, .gid = 7});
  EXPECT_EQ(options.spec.memory_bytes, 1_GiB);
  EXPECT_EQ(options.spec.cpus, 2.5);
  EXPECT_EQ(options.spec.python, "/usr/bin/python3");
  EXPECT_EQ(options.spec.home_links.at(0).second, "/opt/cache");
  EXPECT_EQ(options.image_digest[0], 1);
  EXPECT_EQ(options.image_digest[1], 255);
  EXPECT_EQ(options.instance.size(), 8U);
  EXPECT_GE(options.slots_max, config.runs.max + config.pool.ceiling);
  EXPECT_EQ(options.fail_step, Step::pivot);
  EXPECT_EQ(options.server_uid, 7U);
}

TEST(Wiring, ThePoolGetsItsNumbers) {
  config::Config config;
  config.pool.wait_ms = 1500;
  config.runs.max = 4;
  const service::PoolOptions pool = shots_options(config).pool;
  EXPECT_EQ(pool.target, config.pool.target);
  EXPECT_EQ(pool.runs_max, 4U);
  EXPECT_EQ(pool.wait, std::chrono::milliseconds(1500));
  EXPECT_EQ(pool.run_memory_bytes, config.limits.memory_bytes);
}

}  // namespace
}  // namespace hutch::cli
