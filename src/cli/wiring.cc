#include "cli/wiring.h"

#include <algorithm>
#include <charconv>

#include "cli/instance.h"
#include "config/config_table.h"

namespace hutch::cli {
namespace {

// Sandboxes that are being taken down, or would not go, hold their slot beside the ones in use.
constexpr std::uint32_t kSlotsBeside = 32;
// Slots for the most runs and warm sandboxes that settings can ask for: a reload may raise them,
// and the warden is told only once.
std::uint32_t slots_max() {
  const auto most = [](std::string_view key) { return config::find_field(key)->max; };
  return static_cast<std::uint32_t>(most("runs.max") + most("pool.ceiling")) + kSlotsBeside;
}

std::array<std::uint8_t, 32> bytes_of(const std::string& digest) {
  std::array<std::uint8_t, 32> bytes{};
  for (std::size_t i = 0; i < bytes.size() && 2 * i + 2 <= digest.size(); ++i) {
    const char* const at = digest.data() + 2 * i;
    std::from_chars(at, at + 2, bytes[i], 16);
  }
  return bytes;
}

plan::PlanSpec plan_spec(const model::Limits& limits, const image::ImageConfig& image) {
  plan::PlanSpec spec{.memory_bytes = limits.memory_bytes,
                      .cpus = limits.cpus,
                      .processes = limits.processes,
                      .open_files = limits.open_files,
                      .disk_bytes = limits.disk_bytes,
                      .inodes = limits.inodes,
                      .shm_bytes = limits.shm_bytes,
                      .python = image.python,
                      .env = image.env};
  for (const image::HomeLink& link : image.home_links) {
    spec.home_links.emplace_back(link.path, link.target);
  }
  return spec;
}

Step step_named(const std::string& name) {
  for (std::uint16_t i = 1; i < static_cast<std::uint16_t>(Step::count_); ++i) {
    if (step_name(static_cast<Step>(i)) == name) return static_cast<Step>(i);
  }
  return Step::none;
}

}  // namespace

std::uint32_t sandboxes_max(const config::Config& config) {
  return config.runs.max + config.pool.ceiling + kSlotsBeside;
}

warden::WardenOptions warden_options(const config::Config& config, const image::Image& image,
                                     const User& server) {
  return {.state_dir = config.state_dir,
          .instance = instance_name(config.state_dir),
          .spec = plan_spec(config.limits, image.config),
          .image_path = image.path,
          .image_is_file = image.is_erofs,
          .image_digest = bytes_of(image.digest),
          .slots_max = slots_max(),
          .server_uid = server.uid,
          .rootless = server.subordinate,
          .waived = config.waive,
          .log_level = log_level_named(config.log.level),
          .fail_step = step_named(config.testing.fail_step)};
}

engine::NativeEngineOptions engine_options(const config::Config& config,
                                           const image::Image& image) {
  engine::NativeEngineOptions options{.limits = config.limits, .image = bytes_of(image.digest)};
  const auto profile = image.config.profiles.find(image.config.default_profile);
  if (profile != image.config.profiles.end()) options.imports = profile->second;
  return options;
}

service::PoolOptions pool_options(const config::Config& config) {
  return {.target = config.pool.target,
          .ceiling = config.pool.ceiling,
          .runs_max = config.runs.max,
          .line_max = config.pool.line_max,
          .creates_parallel_max = config.pool.parallel_creates,
          .wait = std::chrono::milliseconds(config.pool.wait_ms),
          .run_memory_bytes = config.limits.memory_bytes};
}

service::ShotsOptions shots_options(const config::Config& config) {
  return {.pool = pool_options(config)};
}

}  // namespace hutch::cli
