#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guest/stream.h"

namespace hutch::guest {

bool read_exact(int fd, void* bytes, std::size_t size) {
  char* at = static_cast<char*>(bytes);
  while (size > 0) {
    const ssize_t got = read(fd, at, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

bool write_exact(int fd, const void* bytes, std::size_t size) {
  const char* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t put = send(fd, at, size, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    at += put;
    size -= static_cast<std::size_t>(put);
  }
  return true;
}

Arena::Arena(std::size_t capacity) {
  void* mapped = mmap(nullptr, capacity, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return;
  base_ = static_cast<char*>(mapped);
  capacity_ = capacity;
}

void* Arena::take(std::size_t size) {
  const std::size_t whole = (size + 15) & ~std::size_t{15};
  if (whole < size || whole > capacity_ - used_) return nullptr;
  void* part = base_ + used_;
  used_ += whole;
  return part;
}

void Writer::put(const void* bytes, std::size_t size) {
  if (size > sizeof buffer_ - filled_) {
    flush();
    if (size > sizeof buffer_) {
      failed_ = failed_ || !write_exact(fd_, bytes, size);
      return;
    }
  }
  memcpy(buffer_ + filled_, bytes, size);
  filled_ += size;
}

bool Writer::flush() {
  if (filled_ > 0 && !failed_) failed_ = !write_exact(fd_, buffer_, filled_);
  filled_ = 0;
  return !failed_;
}

}  // namespace hutch::guest
