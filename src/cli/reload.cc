#include "cli/reload.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "cli/wiring.h"

namespace hutch::cli {
namespace {

// What somebody has put in the place of the file could block whoever reads it, or be a descriptor
// of the server itself where the file was given as /dev/fd/N.
Status check_kind(const std::string& file) {
  struct stat info {};
  const bool known = !file.empty() && ::stat(file.c_str(), &info) == 0;
  if (!known || S_ISREG(info.st_mode) || file == "/dev/null") return {};
  return fail(ErrorCode::config, file + " is no regular file");
}

Result<config::Config> read_again(const config::Sources& sources) {
  TRY(check_kind(sources.file));
  for (const std::string& file : sources.default_files) TRY(check_kind(file));
  return config::load(sources);
}

// Why the settings were not read, and what helps when the server may not read them.
std::string reason(const Error& error) {
  std::string text = describe(error);
  if (error.sys_errno != EACCES && error.sys_errno != EPERM) return text;
  return fmt::format(
      "{}; the server is user {} by now, which has to be able to read the file and to enter every "
      "directory above it: keep it readable for all, such as in /etc/hutch, or restart",
      text, ::geteuid());
}

void add(std::string& list, std::string_view one) {
  if (!list.empty()) list += ", ";
  list += one;
}

}  // namespace

Reload::Reload(config::Config running, Log& log, Calls calls)
    : running_(std::move(running)), log_(log), calls_(std::move(calls)) {}

void Reload::run() {
  const Result<config::Config> read = read_again(running_.sources);
  if (!read) {
    log_.error("reload_refused", "the settings were not read, and nothing has changed",
               {{"reason", reason(read.error())}});
    return;
  }
  std::string changed;
  std::string unchanged;
  std::string keys;  // of those
  for (const config::Difference& one : config::differences(running_, *read)) {
    if (!one.live) add(keys, one.key);
    add(one.live ? changed : unchanged, fmt::format("{} {} -> {}", one.key, one.was, one.now));
  }
  take_over(*read);
  std::string sentence = changed.empty() ? "no setting has changed" : "settings have changed";
  if (!keys.empty()) sentence += "; needs a restart: " + keys;
  log_.info("reloaded", sentence, {{"changed", changed}, {"needs_restart", unchanged}});
}

void Reload::take_over(const config::Config& read) {
  running_ = config::take_over_live(running_, read);
  log_.set_level(log_level_named(running_.log.level));
  calls_.pool(pool_options(running_));
  calls_.answer_limits(running_.limits);
  calls_.internal_hosts(running_.internal.hosts);
  calls_.public_hosts(running_.public_door.hosts);
}

}  // namespace hutch::cli
