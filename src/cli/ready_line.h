// What a server that listens says to whoever started it, once runs are taken: the line on standard
// output, and a word to the service manager.
#pragma once

#include <string>

namespace hutch::cli {

// Who closed standard output does not want to know.
void say_ready(const std::string& internal_url, const std::string& public_url);

}  // namespace hutch::cli
