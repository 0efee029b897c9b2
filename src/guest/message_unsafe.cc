#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guest/message.h"

namespace hutch::guest {

long receive_packet(int socket, void* bytes, std::size_t size, int* fds, int* fd_count) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMessageFdsMax)]{};
  iovec data{bytes, size};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  long got = 0;
  do {
    got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  *fd_count = 0;
  if (got < 0) return -1;
  const cmsghdr* part = CMSG_FIRSTHDR(&header);
  if (part != nullptr && part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
    *fd_count = static_cast<int>((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    memcpy(fds, CMSG_DATA(part), sizeof(int) * static_cast<std::size_t>(*fd_count));
  }
  return got;
}

void close_all(int* fds, int count) {
  for (int i = 0; i < count; ++i) {
    if (fds[i] >= 0) close(fds[i]);
  }
}

}  // namespace hutch::guest
