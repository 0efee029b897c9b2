// What commands print: data on standard output, chatter on standard error. Neither throws, whatever
// the two are connected to.
#pragma once

#include <string_view>

namespace hutch::cli {

// The command's exit code: 0, or 70 with a line on standard error when it could not be written.
int print_data(std::string_view text);

// As far as it can be written: there is nobody to tell otherwise.
void print_chatter(std::string_view text);

}  // namespace hutch::cli
