// SEQPACKET messages with descriptors, without allocation.
#pragma once

#include <cstddef>

#include "isolation/packet.h"

namespace hutch::guest {

using isolation::send_packet;

constexpr int kMessageFdsMax = 8;

// Receives one packet: its size, 0 when the peer has closed, -1 on failure. Descriptors beyond
// kMessageFdsMax are dropped by the kernel.
long receive_packet(int socket, void* bytes, std::size_t size, int* fds, int* fd_count);

void close_all(int* fds, int count);

}  // namespace hutch::guest
