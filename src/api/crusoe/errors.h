// Our own failures in the words of this door.
#pragma once

#include "base/error.h"
#include "http/message.h"

namespace hutch::api::crusoe {

// The status and {"error": ...} that the caller gets. `cancelled` has no answer: nobody reads it.
http::Response error_answer(const Error& error);

}  // namespace hutch::api::crusoe
