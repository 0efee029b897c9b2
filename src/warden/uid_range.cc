#include <fcntl.h>
#include <sys/file.h>

#include <sstream>

#include "base/sys.h"
#include "warden/zone.h"

namespace hutch::warden {
namespace {

constexpr std::uint32_t kFirst = 0x7001'0000;
constexpr std::uint32_t kCount = 65'536;
constexpr std::uint32_t kRanges = 256;
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

}  // namespace

Result<UidRange> take_uid_range() {
  TRY(sys::make_directories("/run/hutch", 0755));
  TRY(sys::make_directories(kLockDirectory, 0700));
  for (std::uint32_t number = 0; number < kRanges; ++number) {
    const std::uint32_t first = kFirst + number * kCount;
    const std::string path = std::string(kLockDirectory) + "/" + std::to_string(first);
    Fd lock = TRY(sys::open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) continue;
    if (taken_by_the_host(first, kCount)) continue;
    return UidRange{first, kCount, std::move(lock)};
  }
  return fail(ErrorCode::setup_failed, Step::uid_range,
              "every range of user ids from " + std::to_string(kFirst) +
                  " up is in use by another instance or by /etc/passwd or /etc/subuid");
}

}  // namespace hutch::warden
