#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>

#include "base/sys.h"
#include "plan/id_layout.h"
#include "plan/id_map.h"
#include "warden/zone.h"

namespace hutch::warden {
namespace {

constexpr const char* kLockDirectory = "/run/hutch/uid-ranges";

// What /etc/passwd and /etc/subuid name already.
std::vector<plan::IdRange> ids_of_the_host() {
  constexpr std::size_t kTextMax = 16 << 20;
  return plan::ids_in_use(sys::read_file("/etc/passwd", kTextMax).value_or(""),
                          sys::read_file("/etc/subuid", kTextMax).value_or(""));
}

// A name of an abstract socket as a lock: an ordinary user has no directory that every instance of
// that user is sure to find, and the name goes with the process that holds it.
Result<Fd> lock_name(const std::string& name) {
  Fd lock(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!lock) return fail(sys::last_error(ErrorCode::io, Step::uid_range, "cannot make a socket"));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(lock.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    return fail(sys::last_error(ErrorCode::busy, Step::uid_range, "the name is taken"));
  }
  return lock;
}

}  // namespace

Result<UidRange> take_subordinate_range() {
  constexpr std::uint32_t kBlock = plan::kSubordinateBlock;
  const auto map = plan::parse_id_map(TRY(sys::read_file("/proc/self/uid_map", 65536)));
  for (std::uint32_t first = 1; first + kBlock <= plan::kSubordinateServerId; first += kBlock) {
    const std::uint32_t on_host = plan::id_outside(map, first);
    auto lock = lock_name(fmt::format("hutch-uid-range-{}", on_host));
    if (!lock) continue;
    return UidRange{first, kBlock, plan::kSubordinateFirstSlot, on_host, std::move(*lock)};
  }
  return fail(ErrorCode::setup_failed, Step::uid_range,
              "every block of this user's subordinate ids is in use by another instance: stop one");
}

Result<UidRange> take_uid_range() {
  TRY(sys::make_directories("/run/hutch", 0755));
  TRY(sys::make_directories(kLockDirectory, 0700));
  const std::vector<plan::IdRange> used = ids_of_the_host();
  for (std::uint32_t number = 0; number < plan::kServerRanges; ++number) {
    const plan::IdRange range = plan::server_range(number);
    const std::string path = std::string(kLockDirectory) + "/" + std::to_string(range.first);
    Fd lock = TRY(sys::open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) continue;
    const auto is_in = [&range](const plan::IdRange& one) { return plan::overlap(range, one); };
    if (std::ranges::any_of(used, is_in)) continue;
    return UidRange{range.first, range.count, plan::kServerFirstSlot, range.first, std::move(lock)};
  }
  return fail(ErrorCode::setup_failed, Step::uid_range,
              "every range of user ids from " + std::to_string(plan::kServerRange.first) +
                  " up is in use by another instance or by /etc/passwd or /etc/subuid");
}

}  // namespace hutch::warden
