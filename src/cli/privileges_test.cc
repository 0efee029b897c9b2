#include "cli/privileges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "base/sys.h"

namespace hutch::cli {
namespace {

using testing::HasSubstr;

constexpr User kNobody{.uid = kReservedUid, .gid = kReservedUid};

// What `body` says in a process of its own: the step has no way back.
std::string in_child(const std::function<std::string()>& body) {
  sys::Pipe pipe = sys::pipe().value();
  const pid_t child = ::fork();
  if (child == 0) {
    const bool told = sys::write_all(pipe.write.get(), body()).has_value();
    ::_exit(told ? 0 : 1);
  }
  pipe.write.reset();
  std::string text;
  char byte = 0;
  while (::read(pipe.read.get(), &byte, 1) == 1) text += byte;
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return text;
}

std::string drop() {
  const Status status = drop_privileges(kNobody);
  return status ? "dropped" : describe(status.error());
}

TEST(Privileges, NothingIsLeft) { EXPECT_EQ(in_child(drop), "dropped"); }

TEST(Privileges, FilesOfRootAreClosed) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  EXPECT_EQ(in_child([] {
              drop();
              return std::string(sys::open("/etc/shadow", 0) ? "open" : "closed");
            }),
            "closed");
}

TEST(Privileges, WhatIsLeftIsNamed) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  EXPECT_EQ(leftover_power(kNobody), "user id 0");
  EXPECT_EQ(in_child([] {
              drop();
              ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
              return leftover_power(kNobody).value_or("nothing");
            }),
            "memory that debuggers can read");
}

TEST(ServerUser, NamesNumbersAndNothing) {
  EXPECT_EQ(find_server_user("12345", false)->uid, 12345U);
  EXPECT_EQ(find_server_user("12345", false)->gid, 12345U);
  EXPECT_NE(find_server_user("nobody", false)->uid, 0U);
  EXPECT_NE(find_server_user("", false)->uid, 0U);
}

TEST(ServerUser, RootAndStrangersAreRefused) {
  for (const char* root : {"root", "0"}) {
    ASSERT_FALSE(find_server_user(root, false));
    EXPECT_THAT(find_server_user(root, false).error().message, HasSubstr("must not be uid 0"));
  }
  EXPECT_THAT(find_server_user("no-such-user", false).error().message,
              HasSubstr("there is no user \"no-such-user\""));
  EXPECT_EQ(find_server_user("no-such-user", false).error().code, ErrorCode::config);
}

}  // namespace
}  // namespace hutch::cli
