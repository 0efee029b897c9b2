#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "isolation/packet.h"

namespace hutch::isolation {

int send_packet(int socket, const void* bytes, std::size_t size, int fd) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
  iovec data{const_cast<void*>(bytes), size};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (fd >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(part), &fd, sizeof fd);
  }
  long put = 0;
  do {
    put = sendmsg(socket, &header, MSG_NOSIGNAL);
  } while (put < 0 && errno == EINTR);
  return put < 0 ? errno : 0;
}

}  // namespace hutch::isolation
