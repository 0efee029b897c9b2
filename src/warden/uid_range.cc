#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <sstream>

#include "base/sys.h"
#include "warden/options.h"
#include "warden/zone.h"

namespace hutch::warden {
namespace {

constexpr std::uint32_t kFirst = 0x7001'0000;
constexpr std::uint32_t kCount = 65'536;
constexpr std::uint32_t kRanges = 256;
constexpr std::uint32_t kFirstSlot = 10'000;  // ids of the zone below are its own
constexpr const char* kLockDirectory = "/run/hutch/uid-ranges";

bool overlaps(std::uint64_t first, std::uint64_t count, std::uint64_t other,
              std::uint64_t other_count) {
  return first < other + other_count && other < first + count;
}

// Lines of name:first:count (subuid, `from` = 1, ranges) or name:x:uid:... (passwd, single ids).
bool mentions(const std::string& text, std::size_t from, bool ranges, std::uint64_t first,
              std::uint64_t count) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string field;
    for (std::size_t i = 0; i <= from; ++i) std::getline(fields, field, ':');
    const std::uint64_t id = std::strtoull(field.c_str(), nullptr, 10);
    std::uint64_t size = 1;
    if (ranges && std::getline(fields, field, ':')) {
      size = std::strtoull(field.c_str(), nullptr, 10);
    }
    if (id != 0 && overlaps(first, count, id, size)) return true;
  }
  return false;
}

bool taken_by_the_host(std::uint64_t first, std::uint64_t count) {
  constexpr std::size_t kTextMax = 16 << 20;
  const auto passwd = sys::read_file("/etc/passwd", kTextMax);
  const auto subuid = sys::read_file("/etc/subuid", kTextMax);
  return (passwd && mentions(*passwd, 2, false, first, count)) ||
         (subuid && mentions(*subuid, 1, true, first, count));
}

constexpr std::uint32_t kBlock = 4'096;
constexpr std::uint32_t kFirstSlotOfBlock = 1'024;
static_assert(1 + kBlock * (kSubordinateServerId / kBlock) <= kSubordinateServerId);

// What an id of our own user namespace is for the host: lines of "inside outside count".
std::uint32_t id_on_host(std::string_view map, std::uint32_t id) {
  std::istringstream lines{std::string(map)};
  std::uint64_t inside = 0;
  std::uint64_t outside = 0;
  std::uint64_t count = 0;
  while (lines >> inside >> outside >> count) {
    if (id >= inside && id - inside < count)
      return static_cast<std::uint32_t>(outside + id - inside);
  }
  return id;
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
  const std::string map = TRY(sys::read_file("/proc/self/uid_map", 65536));
  for (std::uint32_t first = 1; first + kBlock <= kSubordinateServerId; first += kBlock) {
    const std::uint32_t on_host = id_on_host(map, first);
    auto lock = lock_name(fmt::format("hutch-uid-range-{}", on_host));
    if (!lock) continue;
    return UidRange{first, kBlock, kFirstSlotOfBlock, on_host, std::move(*lock)};
  }
  return fail(ErrorCode::setup_failed, Step::uid_range,
              "every block of this user's subordinate ids is in use by another instance: stop one");
}

Result<UidRange> take_uid_range() {
  TRY(sys::make_directories("/run/hutch", 0755));
  TRY(sys::make_directories(kLockDirectory, 0700));
  for (std::uint32_t number = 0; number < kRanges; ++number) {
    const std::uint32_t first = kFirst + number * kCount;
    const std::string path = std::string(kLockDirectory) + "/" + std::to_string(first);
    Fd lock = TRY(sys::open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) continue;
    if (taken_by_the_host(first, kCount)) continue;
    return UidRange{first, kCount, kFirstSlot, first, std::move(lock)};
  }
  return fail(ErrorCode::setup_failed, Step::uid_range,
              "every range of user ids from " + std::to_string(kFirst) +
                  " up is in use by another instance or by /etc/passwd or /etc/subuid");
}

}  // namespace hutch::warden
