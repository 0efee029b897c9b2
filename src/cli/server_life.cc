#include "cli/server_life.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "cli/state_version.h"

namespace hutch::cli {
namespace {

constexpr int kRunsMax = 64;

}  // namespace

Result<StateLock> take_state(ServerLife& life) {
  if (life.listens()) {
    StateLock lock = TRY(StateLock::take(life.config.state_dir));
    TRY(record_state_version(life.config.state_dir));
    return lock;
  }
  // The images are taken from there as well, and what lies below is made by whoever owns it.
  TRY(StateLock::make_own(life.config.state_dir));
  TRY(record_state_version(life.config.state_dir));
  const std::string above = life.config.state_dir + "/run";
  for (int number = 0; number < kRunsMax; ++number) {
    const std::string directory = fmt::format("{}/{}", above, number);
    std::optional<StateLock> lock = TRY(StateLock::take_if_free(directory));
    if (!lock) continue;
    life.config.state_dir = directory;
    return std::move(*lock);
  }
  return fail(ErrorCode::state_in_use,
              fmt::format("{} runs are going on in {}, and there is room for no more: wait for one "
                          "to end, or start `hutch serve`, which runs take turns in",
                          kRunsMax, above));
}

}  // namespace hutch::cli
