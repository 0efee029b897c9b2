// Result<T>: a value or an Error. Dropping one is a compiler warning, and so an error.
#pragma once

#include <tl/expected.hpp>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace hutch {

template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
  Result(tl::expected<T, Error> other) : tl::expected<T, Error>(std::move(other)) {}
};

using Status = Result<void>;

[[nodiscard]] inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, Step::none, 0, std::move(message)});
}

[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, Step step, std::string message) {
  return tl::unexpected<Error>(Error{code, step, 0, std::move(message)});
}

// Spells out that a failure changes nothing for the caller; say why in a comment beside the call.
template <class T>
void ignore_error(const Result<T>& /*result*/) {}

// The value of a result that holds one; nothing for a Status. What TRY yields.
template <class T>
T take_value(Result<T>&& result) {
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

}  // namespace hutch

// Yields the value, or returns the Error from the enclosing function:
//   const Fd fd = TRY(open_file(...));
//   TRY(write_all(...));
#define TRY(expression)                                                   \
  ({                                                                      \
    auto try_result = (expression);                                       \
    if (!try_result) return ::hutch::fail(std::move(try_result).error()); \
    ::hutch::take_value(std::move(try_result));                           \
  })
