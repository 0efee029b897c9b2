// Buffered whole reads and writes on the courier's stream socket, and memory that is only ever
// given back in the order opposite to taking. No allocation by malloc.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hutch::guest {

// All or nothing; false when the peer has closed or failed.
bool read_exact(int fd, void* bytes, std::size_t size);
bool write_exact(int fd, const void* bytes, std::size_t size);

class Arena {
 public:
  // Reserves address space; pages are charged when they are touched.
  explicit Arena(std::size_t capacity);
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // nullptr when it is used up. Aligned to 16 bytes.
  void* take(std::size_t size);
  std::size_t mark() const { return used_; }
  void release(std::size_t mark) { used_ = mark; }

 private:
  char* base_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t used_ = 0;
};

// Collects small records and writes them in large pieces.
class Writer {
 public:
  explicit Writer(int fd) : fd_(fd) {}
  void put(const void* bytes, std::size_t size);
  // False when any write has failed.
  bool flush();

 private:
  int fd_;
  bool failed_ = false;
  std::size_t filled_ = 0;
  char buffer_[65536];
};

}  // namespace hutch::guest
