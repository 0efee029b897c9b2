// How a handler learns that its client has left: the connection was closed or reset while the
// answer was being made. Lives as long as either side wants it; one thread.
#pragma once

#include <functional>
#include <utility>

namespace hutch::http {

class Departure {
 public:
  bool left() const { return left_; }

  // Called once, at the moment the client leaves; at once when it has left already. One callback:
  // a later one replaces it.
  void on_leave(std::function<void()> callback) {
    callback_ = std::move(callback);
    if (left_) fire();
  }

  // For the session. Later calls change nothing.
  void leave() {
    if (std::exchange(left_, true)) return;
    fire();
  }

 private:
  void fire() {
    if (const auto callback = std::exchange(callback_, nullptr)) callback();
  }

  bool left_ = false;
  std::function<void()> callback_;
};

}  // namespace hutch::http
