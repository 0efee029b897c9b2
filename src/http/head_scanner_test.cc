#include "http/head_scanner.h"

#include <gtest/gtest.h>

namespace hutch::http {
namespace {

using namespace std::string_literals;

// 0: not complete, negative: refused with that status, else the size of the head.
int scan(const std::string& bytes, HeadLimits limits = {}) {
  HeadScanner scanner(limits);
  const auto found = scanner.scan(bytes);
  if (!found) return -found.error().status;
  return static_cast<int>(found->value_or(0));
}

TEST(HeadScanner, FindsTheEndOfAHead) {
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\nX-Empty:\r\nX:\ttab\x80\xFF\r\n\r\n";
  EXPECT_EQ(scan(head + "body"), static_cast<int>(head.size()));
  for (std::size_t size = 0; size < head.size(); ++size) EXPECT_EQ(scan(head.substr(0, size)), 0);
  EXPECT_EQ(scan("GET / HTTP/1.0\r\n\r\n"), 18);
}

TEST(HeadScanner, SeesTheSameWhenBytesComeOneByOne) {
  const std::string head = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n";
  HeadScanner scanner({});
  for (std::size_t size = 0; size < head.size(); ++size) {
    const auto found = scanner.scan(head.substr(0, size));
    ASSERT_TRUE(found);
    EXPECT_FALSE(*found);
  }
  EXPECT_EQ(scanner.scan(head).value(), head.size());
}

TEST(HeadScanner, RefusesWhatCouldBeReadInTwoWays) {
  for (const std::string& bytes : {"GET / HTTP/1.1\nHost: a\r\n\r\n"s,        // bare LF
                                   "GET / HTTP/1.1\r\nHost: a\n\n"s,          //
                                   "GET / HTTP/1.1\r\nA: b\rC: d\r\n\r\n"s,   // bare CR
                                   "GET / HTTP/1.1\r\nA: b\r\r\n\r\n"s,       //
                                   "GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n"s,   // folded
                                   "GET / HTTP/1.1\r\nA: b\r\n\tc\r\n\r\n"s,  //
                                   "GET / HTTP/1.1\r\n A: b\r\n\r\n"s,        //
                                   "GET / HTTP/1.1\r\nA: b\0c\r\n\r\n"s,      // NUL
                                   "GET / HTTP/1.1\r\nA: b\x01\r\n\r\n"s,     //
                                   "GET / HTTP/1.1\r\nA : b\r\n\r\n"s,    // space before the colon
                                   "GET / HTTP/1.1\r\nA\t: b\r\n\r\n"s,   //
                                   "GET / HTTP/1.1\r\nA b\r\n\r\n"s,      // no colon
                                   "GET / HTTP/1.1\r\n: b\r\n\r\n"s,      // no name
                                   "GET / HTTP/1.1\r\nA(b): c\r\n\r\n"s,  //
                                   "GET  / HTTP/1.1\r\n\r\n"s,            // request lines
                                   "GET /\tHTTP/1.1\r\n\r\n"s,            //
                                   "GET / x HTTP/1.1\r\n\r\n"s,           //
                                   "GET / HTTP/1\r\n\r\n"s,
                                   "GET / HTTP/1.11\r\n\r\n"s,
                                   "GET / http/1.1\r\n\r\n"s,
                                   "GET /\r\n\r\n"s,                           //
                                   " / HTTP/1.1\r\n\r\n"s,                     //
                                   "GET http://localhost/ HTTP/1.1\r\n\r\n"s,  //
                                   "GET * HTTP/1.1\r\n\r\n"s,                  //
                                   "GET /\xC3\xA9 HTTP/1.1\r\n\r\n"s,          //
                                   "\r\n"s,                                    //
                                   "\x16\x03\x01\x02\x00\x01\x00"s}) {         // a TLS client
    EXPECT_EQ(scan(bytes), -400) << bytes;
  }
}

TEST(HeadScanner, HoldsTheLimitsAtBothEdges) {
  const HeadLimits limits{.line_bytes_max = 20, .fields_bytes_max = 30, .fields_max = 3};
  const std::string line = "GET /abcdef HTTP/1.1";
  ASSERT_EQ(line.size(), 20U);
  EXPECT_GT(scan(line + "\r\n\r\n", limits), 0);
  EXPECT_EQ(scan("GET /abcdefg HTTP/1.1\r\n\r\n", limits), -414);
  const std::string fields = "A: " + std::string(25, 'x') + "\r\n";
  ASSERT_EQ(fields.size(), 30U);
  EXPECT_GT(scan(line + "\r\n" + fields + "\r\n", limits), 0);
  EXPECT_EQ(scan(line + "\r\nA: " + std::string(28, 'x') + "\r\n\r\n", limits), -431);
  EXPECT_GT(scan(line + "\r\nA:\r\nB:\r\nC:\r\n\r\n", limits), 0);
  EXPECT_EQ(scan(line + "\r\nA:\r\nB:\r\nC:\r\nD:\r\n\r\n", limits), -431);
}

TEST(HeadScanner, RefusesAsSoonAsALimitIsPassedNotOnlyAtTheEnd) {
  const HeadLimits limits{.line_bytes_max = 20, .fields_bytes_max = 30};
  EXPECT_EQ(scan(std::string(100, 'G'), limits), -414);
  EXPECT_EQ(scan("GET / HTTP/1.1\r\nA: " + std::string(100, 'x'), limits), -431);
}

}  // namespace
}  // namespace hutch::http
