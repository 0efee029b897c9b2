// Reads what the program left in its working directory, as the program's own user. Whatever of the
// program lived on is dead by now: the plan kills it before this process becomes the tenant's user,
// when nobody inside may signal it yet. The first act here is to look that nobody is left: only
// then can nothing change while it is read, and no name be swapped for another between looking and
// opening.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sodium/crypto_generichash.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <new>

#include "guest/guest.h"
#include "guest/stream.h"
#include "plan/courier_wire.h"

namespace hutch::guest {
namespace {

using plan::RecordKind;
using plan::RecordReason;

constexpr int kDepthMax = 128;
constexpr std::size_t kArenaBytes = std::size_t{1} << 30U;  // address space; touched pages count

struct Known {
  const char* path;
  std::uint64_t size;
  const unsigned char* digest;
};

struct Entry {
  const char* name;
  bool directory;
};

struct Walk {
  explicit Walk(int stream) : arena(kArenaBytes), writer(stream) {}
  Arena arena;
  Writer writer;
  std::uint64_t file_bytes = 0;
  std::uint64_t files_bytes = 0;
  std::uint32_t files_count = 0;
  Known* known = nullptr;
  std::uint32_t known_count = 0;
  std::uint64_t sent_bytes = 0;
  std::uint32_t sent_count = 0;
  std::uint64_t omitted = 0;
  char path[plan::kPathBytesMax + 1];
};

int compare_known(const void* left, const void* right) {
  return strcmp(static_cast<const Known*>(left)->path, static_cast<const Known*>(right)->path);
}

// Directories sort as if their name ended in a slash: the walk then meets whole paths in order.
int compare_entries(const void* left, const void* right) {
  const auto* a = static_cast<const Entry*>(left);
  const auto* b = static_cast<const Entry*>(right);
  const char* x = a->name;
  const char* y = b->name;
  while (*x != '\0' && *x == *y) {
    ++x;
    ++y;
  }
  const int last_x = *x == '\0' && a->directory ? '/' : static_cast<unsigned char>(*x);
  const int last_y = *y == '\0' && b->directory ? '/' : static_cast<unsigned char>(*y);
  return last_x - last_y;
}

bool read_orders(Walk* walk, int stream) {
  std::uint32_t magic = 0;
  if (!read_exact(stream, &magic, sizeof magic) || magic != plan::kMagicOut) return false;
  if (!read_exact(stream, &walk->file_bytes, 8)) return false;
  if (!read_exact(stream, &walk->files_bytes, 8)) return false;
  if (!read_exact(stream, &walk->files_count, 4)) return false;
  if (!read_exact(stream, &walk->known_count, 4)) return false;
  walk->known = static_cast<Known*>(walk->arena.take(sizeof(Known) * walk->known_count));
  if (walk->known == nullptr) return false;
  for (std::uint32_t i = 0; i < walk->known_count; ++i) {
    std::uint32_t path_size = 0;
    std::uint64_t size = 0;
    if (!read_exact(stream, &path_size, 4) || !read_exact(stream, &size, 8)) return false;
    if (path_size > plan::kPathBytesMax) return false;
    auto* digest = static_cast<unsigned char*>(walk->arena.take(plan::kDigestBytes));
    auto* path = static_cast<char*>(walk->arena.take(path_size + 1));
    if (digest == nullptr || path == nullptr) return false;
    if (!read_exact(stream, digest, plan::kDigestBytes)) return false;
    if (!read_exact(stream, path, path_size)) return false;
    path[path_size] = '\0';
    walk->known[i] = {path, size, digest};
  }
  qsort(walk->known, walk->known_count, sizeof(Known), compare_known);
  return true;
}

void put_record(Walk* walk, RecordKind kind, RecordReason reason, std::size_t path_size,
                std::uint64_t size) {
  const unsigned char head[2] = {static_cast<unsigned char>(kind),
                                 static_cast<unsigned char>(reason)};
  const auto path_bytes = static_cast<std::uint32_t>(path_size);
  walk->writer.put(head, sizeof head);
  walk->writer.put(&path_bytes, sizeof path_bytes);
  walk->writer.put(&size, sizeof size);
  walk->writer.put(walk->path, path_size);
}

void omit(Walk* walk, RecordReason reason, std::size_t path_size, std::uint64_t size) {
  if (walk->omitted < walk->files_count) {
    put_record(walk, RecordKind::omitted, reason, path_size, size);
  }
  ++walk->omitted;
}

bool is_utf8(const char* text, std::size_t size) {
  const auto* at = reinterpret_cast<const unsigned char*>(text);
  const auto* end = at + size;
  while (at < end) {
    int more = 0;
    std::uint32_t code = 0;
    if (*at < 0x80) {
      ++at;
      continue;
    }
    if (*at >= 0xc2 && *at <= 0xdf) {
      more = 1;
      code = *at & 0x1fU;
    } else if (*at >= 0xe0 && *at <= 0xef) {
      more = 2;
      code = *at & 0x0fU;
    } else if (*at >= 0xf0 && *at <= 0xf4) {
      more = 3;
      code = *at & 0x07U;
    } else {
      return false;
    }
    ++at;
    for (int i = 0; i < more; ++i, ++at) {
      if (at == end || (*at & 0xc0U) != 0x80U) return false;
      code = code << 6U | (*at & 0x3fU);
    }
    const bool short_form = (more == 2 && code < 0x800) || (more == 3 && code < 0x10000);
    if (short_form || (code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff) return false;
  }
  return true;
}

const Known* find_known(const Walk& walk) {
  const Known key{walk.path, 0, nullptr};
  return static_cast<const Known*>(
      bsearch(&key, walk.known, walk.known_count, sizeof(Known), compare_known));
}

bool same_content(const Known& known, const unsigned char* bytes, std::uint64_t size) {
  unsigned char digest[plan::kDigestBytes];
  crypto_generichash(digest, sizeof digest, bytes, size, nullptr, 0);
  return memcmp(digest, known.digest, sizeof digest) == 0;
}

// The whole file in memory: a record is only begun when its every byte is there.
unsigned char* load(Walk* walk, int directory, const char* name, std::uint64_t size) {
  auto* bytes = static_cast<unsigned char*>(walk->arena.take(size + 1));
  if (bytes == nullptr) return nullptr;
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOATIME;
  const int fd = openat(directory, name, kFlags);
  if (fd < 0) return nullptr;
  struct stat info {};
  bool good = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
              static_cast<std::uint64_t>(info.st_size) == size;
  for (std::uint64_t done = 0; good && done < size;) {
    const ssize_t got = pread(fd, bytes + done, size - done, static_cast<off_t>(done));
    good = got > 0;
    if (good) done += static_cast<std::uint64_t>(got);
  }
  close(fd);
  return good ? bytes : nullptr;
}

void take_regular(Walk* walk, int directory, const char* name, std::size_t path_size,
                  std::uint64_t size) {
  const Known* known = find_known(*walk);
  const bool comparable = known != nullptr && known->size == size;
  if (size > walk->file_bytes && !comparable) {
    omit(walk, RecordReason::too_large, path_size, size);
    return;
  }
  const std::size_t mark = walk->arena.mark();
  const unsigned char* bytes = load(walk, directory, name, size);
  if (bytes == nullptr) {
    omit(walk, RecordReason::unreadable, path_size, size);
  } else if (comparable && same_content(*known, bytes, size)) {
    put_record(walk, RecordKind::unchanged, RecordReason::too_large, path_size, size);
  } else if (size > walk->file_bytes) {
    omit(walk, RecordReason::too_large, path_size, size);
  } else if (walk->sent_count >= walk->files_count) {
    omit(walk, RecordReason::count, path_size, size);
  } else if (size > walk->files_bytes - walk->sent_bytes) {
    omit(walk, RecordReason::total, path_size, size);
  } else {
    put_record(walk, RecordKind::file, RecordReason::too_large, path_size, size);
    walk->writer.put(bytes, size);
    walk->sent_bytes += size;
    ++walk->sent_count;
  }
  walk->arena.release(mark);
}

// Names of one directory, sorted; nullptr with *count 0 when it cannot be read.
Entry* list(Walk* walk, int directory, std::size_t* count) {
  alignas(8) static char buffer[65536];
  std::size_t total = 0;
  const std::size_t names_mark = walk->arena.mark();
  char* first = nullptr;
  // Names are laid down one after the other, each behind a byte that says whether it is a
  // directory.
  for (;;) {
    const long got = syscall(SYS_getdents64, directory, buffer, sizeof buffer);
    if (got <= 0) break;
    for (long at = 0; at < got;) {
      const auto* item = reinterpret_cast<const dirent64*>(buffer + at);
      at += item->d_reclen;
      if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0) continue;
      const std::size_t length = strlen(item->d_name) + 1;
      auto* slot = static_cast<char*>(walk->arena.take(length + 1));
      if (slot == nullptr) break;
      if (first == nullptr) first = slot;
      slot[0] = item->d_type == DT_DIR ? 'd' : 'f';
      memcpy(slot + 1, item->d_name, length);
      ++total;
    }
  }
  auto* entries = static_cast<Entry*>(walk->arena.take(sizeof(Entry) * total));
  if (entries == nullptr) {
    walk->arena.release(names_mark);
    return nullptr;
  }
  char* at = first;
  for (std::size_t i = 0; i < total; ++i) {
    entries[i] = {at + 1, at[0] == 'd'};
    at += (strlen(at + 1) + 2 + 15) & ~std::size_t{15};
  }
  qsort(entries, total, sizeof(Entry), compare_entries);
  *count = total;
  return entries;
}

void walk_directory(Walk* walk, int directory, std::size_t path_size, int depth);

void take_entry(Walk* walk, int directory, const Entry& entry, std::size_t path_size, int depth) {
  const std::size_t name_size = strlen(entry.name);
  if (path_size + name_size > plan::kPathBytesMax) {
    omit(walk, RecordReason::unreadable, path_size, 0);
    return;
  }
  memcpy(walk->path + path_size, entry.name, name_size + 1);
  const std::size_t whole = path_size + name_size;
  struct stat info {};
  if (fstatat(directory, entry.name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
    omit(walk, RecordReason::unreadable, whole, 0);
  } else if (!is_utf8(entry.name, name_size)) {
    omit(walk, RecordReason::name, whole, static_cast<std::uint64_t>(info.st_size));
  } else if (S_ISDIR(info.st_mode)) {
    if (strcmp(entry.name, "__pycache__") == 0) return;
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NOATIME;
    const int inner = depth < kDepthMax ? openat(directory, entry.name, kFlags) : -1;
    if (inner < 0 || whole + 1 > plan::kPathBytesMax) {
      omit(walk, RecordReason::unreadable, whole, 0);
    } else {
      walk->path[whole] = '/';
      walk_directory(walk, inner, whole + 1, depth + 1);
    }
    if (inner >= 0) close(inner);
  } else if (S_ISREG(info.st_mode)) {
    take_regular(walk, directory, entry.name, whole, static_cast<std::uint64_t>(info.st_size));
  } else {
    omit(walk, RecordReason::not_regular, whole, 0);
  }
}

// Recursion is bounded by kDepthMax, memory by what the inodes limit lets exist.
void walk_directory(Walk* walk, int directory, std::size_t path_size, int depth) {
  const std::size_t mark = walk->arena.mark();
  std::size_t count = 0;
  const Entry* entries = list(walk, directory, &count);
  for (std::size_t i = 0; entries != nullptr && i < count; ++i) {
    take_entry(walk, directory, entries[i], path_size, depth);
  }
  walk->arena.release(mark);
}

// A program may have shut its own directory; what lies in it is still the program's result.
int open_work() {
  if (fchmodat(AT_FDCWD, "/work", 0700, 0) != 0) return -1;
  return open("/work", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

}  // namespace

int carry_files_out(int stream) {
  if (isolation::kill_others() != 0) return 2;
  static char place[sizeof(Walk)];  // large, and this process does nothing else
  auto* walk = new (place) Walk(stream);
  const int work = open_work();
  if (work < 0) return 3;
  if (!read_orders(walk, stream)) return 4;
  walk_directory(walk, work, 0, 0);
  put_record(walk, RecordKind::end, RecordReason::too_large, 0, walk->omitted);
  return walk->writer.flush() ? 0 : 1;
}

}  // namespace hutch::guest
