// SEQPACKET messages with descriptors, without allocation.
#pragma once

#include <cstddef>

namespace hutch::guest {

constexpr int kMessageFdsMax = 8;

// Sends the bytes with at most one descriptor (-1: none). 0 or errno.
int send_packet(int socket, const void* bytes, std::size_t size, int fd);

// Receives one packet: its size, 0 when the peer has closed, -1 on failure. Descriptors beyond
// kMessageFdsMax are dropped by the kernel.
long receive_packet(int socket, void* bytes, std::size_t size, int* fds, int* fd_count);

void close_all(int* fds, int count);

}  // namespace hutch::guest
