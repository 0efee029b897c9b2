#include "cli/privileges.h"

#include <fmt/format.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>

#include "base/sys.h"
#include "plan/id_layout.h"

namespace hutch::cli {
namespace {

constexpr int kCapabilityBits = 64;

tl::unexpected<Error> failed(const std::string& what) {
  return fail(sys::last_error(ErrorCode::internal, Step::none, "cannot " + what));
}

Status drop_bounding_set() {
  for (int bit = 0; bit < kCapabilityBits; ++bit) {
    const int set = ::prctl(PR_CAPBSET_READ, bit, 0, 0, 0);
    if (set < 0) return {};  // the kernel knows no capability from here on
    if (set == 1 && ::prctl(PR_CAPBSET_DROP, bit, 0, 0, 0) != 0) {
      return failed(fmt::format("drop capability {} from the bounding set", bit));
    }
  }
  return {};
}

Status clear_capabilities() {
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) {
    return failed("clear the ambient capabilities");
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const std::array<__user_cap_data_struct, 2> none{};
  if (::syscall(SYS_capset, &header, none.data()) != 0) return failed("clear the capabilities");
  return {};
}

Status become(const User& user) {
  if (::setgroups(0, nullptr) != 0 || ::getgroups(0, nullptr) != 0) {
    return failed("leave the supplementary groups");
  }
  if (::setresgid(user.gid, user.gid, user.gid) != 0) return failed("change the group");
  // The bounding set goes before the user: afterwards it could not be changed.
  TRY(drop_bounding_set());
  if (::setresuid(user.uid, user.uid, user.uid) != 0) return failed("change the user");
  return {};
}

std::optional<std::string> leftover_identity(const User& user) {
  std::array<uid_t, 3> uids{};
  std::array<gid_t, 3> gids{};
  if (::getresuid(&uids[0], &uids[1], &uids[2]) != 0) return "user ids that cannot be read";
  if (::getresgid(&gids[0], &gids[1], &gids[2]) != 0) return "group ids that cannot be read";
  for (const uid_t uid : uids) {
    if (uid != user.uid || uid == 0) return fmt::format("user id {}", uid);
  }
  for (const gid_t gid : gids) {
    if (gid != user.gid) return fmt::format("group id {}", gid);
  }
  if (::setresuid(0, 0, 0) == 0) return "the way back to root";
  return std::nullopt;
}

std::optional<std::string> leftover_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> sets{};
  if (::syscall(SYS_capget, &header, sets.data()) != 0) return "capabilities that cannot be read";
  for (const __user_cap_data_struct& set : sets) {
    if ((set.effective | set.permitted | set.inheritable) != 0) return "capabilities";
  }
  for (int bit = 0; bit < kCapabilityBits; ++bit) {
    const int ambient = ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, bit, 0, 0);
    if (ambient < 0) break;
    if (ambient == 1) return fmt::format("the ambient capability {}", bit);
  }
  return std::nullopt;
}

}  // namespace

Result<User> find_server_user(const std::string& setting, bool ordinary) {
  if (ordinary && !setting.empty()) {
    return fail(ErrorCode::config,
                "server.user is for a server that root starts; leave the setting out");
  }
  if (ordinary) {
    constexpr uid_t kId = plan::kSubordinateServerId;
    return User{.uid = kId, .gid = kId, .subordinate = true};
  }
  uid_t number = 0;
  const char* const end = setting.data() + setting.size();
  const auto parsed = std::from_chars(setting.data(), end, number);
  const bool is_number = !setting.empty() && parsed.ec == std::errc{} && parsed.ptr == end;
  const passwd* entry =
      is_number ? ::getpwuid(number) : ::getpwnam(setting.empty() ? "hutch" : setting.c_str());
  User user{.uid = kReservedUid, .gid = kReservedUid};
  if (entry != nullptr) {
    user = {.uid = entry->pw_uid, .gid = entry->pw_gid};
  } else if (is_number) {
    user = {.uid = number, .gid = number};
  } else if (!setting.empty()) {
    return fail(ErrorCode::config,
                fmt::format("server.user: there is no user \"{}\" here: create it, or leave the "
                            "setting out",
                            setting));
  }
  if (user.uid == 0 || user.uid == static_cast<uid_t>(-1)) {
    return fail(ErrorCode::config, fmt::format("server.user must not be uid {}: name an "
                                               "unprivileged user, or leave the setting out",
                                               user.uid));
  }
  // A group of root's would keep files of root's open to the server.
  if (user.gid == 0) user.gid = user.uid;
  return user;
}

Status drop_privileges(const User& user) {
  const bool as_root = ::geteuid() == 0;
  const User target = as_root ? user : User{.uid = ::geteuid(), .gid = ::getegid()};
  if (as_root) TRY(become(target));
  TRY(clear_capabilities());
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failed("set no_new_privs");
  const rlimit no_core{0, 0};
  if (::setrlimit(RLIMIT_CORE, &no_core) != 0) return failed("forbid core dumps");
  // A change of the user sets the flag anew, so it comes after that.
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return failed("close the memory to debuggers");
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) return failed("adopt orphans");
  if (const std::optional<std::string> left = leftover_power(target)) {
    return fail(ErrorCode::internal,
                "the server still has " + *left + " after giving its privileges up");
  }
  return {};
}

std::optional<std::string> leftover_power(const User& user) {
  if (auto left = leftover_identity(user)) return left;
  if (auto left = leftover_capabilities()) return left;
  if (::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) return "the use of setuid programs";
  if (::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0) return "memory that debuggers can read";
  rlimit core{1, 1};
  if (::getrlimit(RLIMIT_CORE, &core) != 0 || core.rlim_max != 0) return "core dumps";
  int reaper = 0;
  if (::prctl(PR_GET_CHILD_SUBREAPER, &reaper, 0, 0, 0) != 0 || reaper != 1) {
    return "orphans that nobody reaps";
  }
  // Identity and capabilities belong to threads: another thread would have kept them.
  std::error_code ignored;
  const auto threads =
      std::distance(std::filesystem::directory_iterator("/proc/self/task", ignored),
                    std::filesystem::directory_iterator());
  if (threads != 1) return fmt::format("{} threads", threads);
  return std::nullopt;
}

}  // namespace hutch::cli
