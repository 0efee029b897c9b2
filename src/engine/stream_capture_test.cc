#include "engine/stream_capture.h"

#include <gtest/gtest.h>

#include <string>

namespace hutch::engine {
namespace {

std::string pattern(std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i) text += static_cast<char>('a' + i * 7 % 26);
  return text;
}

model::StreamText capture(const std::string& text, std::uint64_t bytes_max, std::size_t chunk) {
  StreamCapture capture(bytes_max);
  for (std::size_t at = 0; at < text.size(); at += chunk) {
    capture.add(std::as_bytes(std::span(text).subspan(at, std::min(chunk, text.size() - at))));
  }
  return capture.take();
}

TEST(StreamCapture, KeepsTheTwoHalvesForEveryLengthAndChunk) {
  for (const std::uint64_t cap : {0, 1, 2, 7, 10}) {
    for (std::size_t size = 0; size < 45; ++size) {
      const std::string text = pattern(size);
      for (std::size_t chunk = 1; chunk < 14; ++chunk) {
        const auto kept = capture(text, cap, chunk);
        ASSERT_EQ(kept.total_bytes, size);
        if (size <= cap) {
          ASSERT_EQ(kept.head, text);
          ASSERT_EQ(kept.tail, "");
          ASSERT_EQ(kept.dropped_bytes, 0U);
        } else {
          ASSERT_EQ(kept.head, text.substr(0, cap / 2));
          ASSERT_EQ(kept.tail, text.substr(size - (cap - cap / 2)));
          ASSERT_EQ(kept.dropped_bytes, size - cap);
        }
      }
    }
  }
}

TEST(StreamCapture, EdgesOfAMebibyte) {
  for (const int past : {-1, 0, 1}) {
    const std::string text = pattern((1U << 20U) + static_cast<std::size_t>(past));
    const auto kept = capture(text, 1U << 20U, 65536);
    EXPECT_EQ(kept.dropped_bytes, past > 0 ? 1U : 0U);
    EXPECT_EQ(kept.head.size() + kept.tail.size(), std::min<std::size_t>(text.size(), 1U << 20U));
  }
}

TEST(StreamCapture, IsEmptyAfterTake) {
  StreamCapture capture(4);
  capture.add(std::as_bytes(std::span("123456", 6)));
  EXPECT_EQ(capture.take().tail, "56");
  EXPECT_EQ(capture.total_bytes(), 0U);
  capture.add(std::as_bytes(std::span("ab", 2)));
  EXPECT_EQ(capture.take().head, "ab");
}

}  // namespace
}  // namespace hutch::engine
