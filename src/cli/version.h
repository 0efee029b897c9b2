// `hutch version`: which build this is.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace hutch::cli {

// Stands behind the version and in the ready line of builds with fakes and failpoints.
#ifdef HUTCH_TESTING
inline constexpr std::string_view kTestingMark = " testing=1";
#else
inline constexpr std::string_view kTestingMark;
#endif

// "hutch 0.1.0" and the mark.
std::string version_line();

// `exit_code` has to outlive the parsing of `app`; 0 unless the line cannot be written.
void add_version_command(CLI::App& app, int& exit_code);

}  // namespace hutch::cli
