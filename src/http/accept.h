// Which form of an answer a request asks for.
#pragma once

#include <string_view>
#include <vector>

#include "http/message.h"

namespace hutch::http {

// Whether the request's Accept fields name `type` itself (wildcards ask for nothing in particular)
// and would rather have it than `plain`: by a larger weight, or by standing first at the same one.
// Both are lower-case media types without parameters. What cannot be read asks for nothing.
bool prefers(const std::vector<Field>& fields, std::string_view type, std::string_view plain);

}  // namespace hutch::http
