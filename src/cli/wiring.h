// The configuration in the words of the rooms that take it. Pure: decides nothing, opens nothing.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "cli/privileges.h"
#include "config/config.h"
#include "engine/native_engine.h"
#include "image/store.h"
#include "service/shots.h"
#include "warden/options.h"

namespace hutch::cli {

// The sandboxes that there may be at once, those that are being taken down included.
std::uint32_t sandboxes_max(const config::Config& config);

warden::WardenOptions warden_options(const config::Config& config, const image::Image& image,
                                     const User& server);

engine::NativeEngineOptions engine_options(const config::Config& config, const image::Image& image);

service::PoolOptions pool_options(const config::Config& config);
service::ShotsOptions shots_options(const config::Config& config);

}  // namespace hutch::cli
