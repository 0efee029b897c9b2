#include "http/host_rule.h"

#include <gtest/gtest.h>

namespace hutch::http {
namespace {

TEST(HostRule, KnowsLoopbackUnderEveryUsualNameAndPort) {
  const HostRule rule("127.0.0.1", {});
  for (const char* host :
       {"localhost", "LOCALHOST:8700", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:65535"}) {
    EXPECT_TRUE(rule.host_allowed(host)) << host;
  }
}

TEST(HostRule, RefusesEverythingElse) {
  const HostRule rule("127.0.0.1", {});
  for (const char* host :
       {"", "example.com", "localhost.example.com", "localhost.", "127.0.0.1.example.com",
        "127.0.0.2", "localhost:", "localhost:80:80", "localhost:x", "localhost:123456", "[::1",
        "[::2]", "::1", "user@localhost", "localhost/x", " localhost", ":80"}) {
    EXPECT_FALSE(rule.host_allowed(host)) << host;
  }
}

TEST(HostRule, KnowsWhatItIsBoundToAndWhatIsListed) {
  const HostRule rule("10.1.2.3", {"hutch.internal", "Gate.example:8443"});
  EXPECT_TRUE(rule.host_allowed("10.1.2.3:8700"));
  EXPECT_TRUE(rule.host_allowed("Hutch.Internal:99"));
  EXPECT_TRUE(rule.host_allowed("gate.example:8443"));
  EXPECT_FALSE(rule.host_allowed("gate.example:80"));
  EXPECT_FALSE(rule.host_allowed("gate.example"));
  EXPECT_TRUE(HostRule("fd00::5", {}).host_allowed("[FD00::5]:8700"));
  EXPECT_FALSE(HostRule("0.0.0.0", {}).host_allowed("0.0.0.0:8700"));
}

TEST(HostRule, HoldsOriginsToTheSameList) {
  const HostRule rule("127.0.0.1", {});
  EXPECT_TRUE(rule.origin_allowed("http://localhost:3000"));
  EXPECT_TRUE(rule.origin_allowed("https://127.0.0.1"));
  for (const char* origin : {"null", "", "http://example.com", "http://localhost.example.com",
                             "http://localhost/x", "file://localhost", "localhost", "http://"}) {
    EXPECT_FALSE(rule.origin_allowed(origin)) << origin;
  }
}

}  // namespace
}  // namespace hutch::http
