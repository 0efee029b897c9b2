// `hutch docs man DIR`: the manual pages, written from the tree of commands and the table of
// settings, so that they say what `--help` says.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace hutch::cli {

struct ManPage {
  std::string name;  // "hutch-serve.1"
  std::string text;  // roff with the macros of man(7)
};

// hutch.1, one page for each command that `app` shows, and hutch-config.5.
std::vector<ManPage> man_pages(const CLI::App& app);

// `text` as roff prints it unchanged: `words in backticks` are bold, and a line that begins with a
// dot is no request.
std::string man_text(std::string_view text);

// Adds `man` to the command `docs`, which has to be there. Call it when all commands are.
void add_man_command(CLI::App& app, int& exit_code);

}  // namespace hutch::cli
