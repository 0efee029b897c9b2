// Undoes the steps of a construction that did not reach its end, last step first.
#pragma once

#include <functional>
#include <utility>
#include <vector>

namespace hutch {

class Rollback {
 public:
  Rollback() = default;
  Rollback(const Rollback&) = delete;
  Rollback& operator=(const Rollback&) = delete;
  ~Rollback() {
    for (auto it = undo_.rbegin(); it != undo_.rend(); ++it) (*it)();
  }

  // `undo` must not throw and must not fail loudly.
  void add(std::function<void()> undo) { undo_.push_back(std::move(undo)); }
  // The construction is complete: nothing is undone.
  void dismiss() { undo_.clear(); }

 private:
  std::vector<std::function<void()>> undo_;
};

}  // namespace hutch
