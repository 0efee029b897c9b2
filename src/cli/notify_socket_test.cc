#include "cli/notify_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/fd.h"

namespace hutch::cli {
namespace {

class ServiceManager : public testing::Test {
 protected:
  ~ServiceManager() override { ::unsetenv("NOTIFY_SOCKET"); }

  // A socket under the name that the environment would give.
  static Fd listen(const std::string& name) {
    Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name.front() == '@') address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    return socket;
  }
  static std::string heard(const Fd& socket) {
    std::array<char, 64> text{};
    const ssize_t size = ::recv(socket.get(), text.data(), text.size(), 0);
    return size < 0 ? "nothing" : std::string(text.data(), static_cast<std::size_t>(size));
  }
};

TEST_F(ServiceManager, HearsWhatIsSaid) {
  const std::string path = testing::TempDir() + "hutch_notify_" + std::to_string(::getpid());
  for (const std::string& name : {path, "@" + path}) {
    const Fd socket = listen(name);
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
    tell_service_manager("READY=1");
    EXPECT_EQ(heard(socket), "READY=1") << name;
  }
  ::unlink(path.c_str());
}

TEST_F(ServiceManager, IsNotNeeded) {
  ::unsetenv("NOTIFY_SOCKET");
  tell_service_manager("READY=1");
  for (const char* name : {"", "/", "relative", "/nobody/listens/here"}) {
    ::setenv("NOTIFY_SOCKET", name, 1);
    tell_service_manager("READY=1");
  }
  ::setenv("NOTIFY_SOCKET", std::string(200, '/').c_str(), 1);
  tell_service_manager("READY=1");
}

}  // namespace
}  // namespace hutch::cli
