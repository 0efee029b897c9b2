// One SEQPACKET message out, without allocation: how the processes that leave the host, and those
// inside, report.
#pragma once

#include <cstddef>

namespace hutch::isolation {

// Sends the bytes with at most one descriptor (-1: none). 0 or errno.
int send_packet(int socket, const void* bytes, std::size_t size, int fd);

}  // namespace hutch::isolation
