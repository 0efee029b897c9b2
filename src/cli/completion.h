// `hutch completion bash|zsh|fish`: what the shell needs to complete a command line, written from
// the tree of commands at run time, so that a new command or flag is completed without a word here.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace hutch::cli {

// What can stand in one place of a command line.
struct Completed {
  enum class Kind { nothing, words, files, directories, settings };
  Kind kind = Kind::nothing;
  std::vector<std::string> words;  // all there are; for settings the keys, each before a "="
};

struct CompletedOption {
  std::vector<std::string> names;  // "-h", "--help"
  std::string about;
  bool takes_value = false;
  Completed value;
};

struct CompletedCommand {
  std::string path;  // "image rm"; empty for hutch itself
  std::string about;
  std::vector<std::string> commands;  // below it
  std::vector<CompletedOption> options;
  Completed argument;
};

// All of them, hutch first, a command before those below it.
std::vector<CompletedCommand> completed_commands(const CLI::App& app);

std::string bash_completion(const std::vector<CompletedCommand>& commands);
std::string zsh_completion(const std::vector<CompletedCommand>& commands);
std::string fish_completion(const std::vector<CompletedCommand>& commands);

// The tree is read when the command runs. `exit_code` has to outlive the parsing of `app`.
void add_completion_command(CLI::App& app, int& exit_code);

}  // namespace hutch::cli
