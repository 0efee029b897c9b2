#include "cli/completion.h"

#include <fmt/format.h>

#include <memory>

#include "cli/output.h"
#include "config/config_table.h"

namespace hutch::cli {
namespace {

std::vector<const CLI::App*> shown_commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) {
    return !command->get_name().empty() && !command->get_group().empty();
  });
}

std::vector<std::string> setting_keys() {
  std::vector<std::string> keys;
  for (const config::Field& field : config::fields()) {
    if (!field.doc.empty()) keys.emplace_back(field.key);
  }
  return keys;
}

// "{auto,erofs}" is how the parser writes down which values there are.
std::vector<std::string> closed_values(const std::string& type_name) {
  const std::size_t open = type_name.find('{');
  const std::size_t close = type_name.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return {};
  return CLI::detail::split(type_name.substr(open + 1, close - open - 1), ',');
}

// By the words that the help has for the value.
Completed value_of(const CLI::Option& option) {
  using enum Completed::Kind;
  if (auto words = closed_values(option.get_type_name()); !words.empty()) {
    return {Completed::Kind::words, std::move(words)};
  }
  std::string text = option.get_option_text();
  text = text.substr(0, text.find_first_of(" ["));
  if (text == "KEY=VALUE") return {settings, setting_keys()};
  if (text == "KEY") return {Completed::Kind::words, setting_keys()};
  if (text == "DIR") return {directories, {}};
  if (text == "FILE" || text == "PATH" || text.starts_with("FILE|")) return {files, {}};
  return {};
}

CompletedCommand completed(const CLI::App& app, const std::string& path) {
  CompletedCommand one{.path = path, .about = app.get_description()};
  for (const CLI::App* command : shown_commands(app)) one.commands.push_back(command->get_name());
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    if (!option->nonpositional()) {
      // The first one decides; a further one is most often the arguments of a program.
      if (one.argument.kind == Completed::Kind::nothing) one.argument = value_of(*option);
      continue;
    }
    CompletedOption shown{.about = option->get_description(),
                          .takes_value = option->get_type_size() != 0};
    for (const std::string& name : option->get_snames()) shown.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) shown.names.push_back("--" + name);
    if (shown.takes_value) shown.value = value_of(*option);
    one.options.push_back(std::move(shown));
  }
  return one;
}

void collect(const CLI::App& app, const std::string& path, std::vector<CompletedCommand>& all) {
  all.push_back(completed(app, path));
  for (const CLI::App* command : shown_commands(app)) {
    collect(*command, path.empty() ? command->get_name() : path + " " + command->get_name(), all);
  }
}

// `hutch help` takes names of commands.
void complete_help(std::vector<CompletedCommand>& all) {
  const std::vector<std::string> names = all.front().commands;
  for (CompletedCommand& one : all) {
    if (one.path == "help") one.argument = {Completed::Kind::words, names};
  }
}

}  // namespace

std::vector<CompletedCommand> completed_commands(const CLI::App& app) {
  std::vector<CompletedCommand> all;
  collect(app, "", all);
  complete_help(all);
  return all;
}

void add_completion_command(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("completion", "Print what a shell needs to complete hutch's commands");
  auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer(
      "\nFor this session:\n"
      "  bash  source <(hutch completion bash)\n"
      "  zsh   source <(hutch completion zsh)      after compinit\n"
      "  fish  hutch completion fish | source\n"
      "For good: the same line in ~/.bashrc or ~/.zshrc;\n"
      "  fish  hutch completion fish > ~/.config/fish/completions/hutch.fish\n");
  command->callback([&app, shell, &exit_code] {
    const std::vector<CompletedCommand> commands = completed_commands(app);
    exit_code = print_data(*shell == "bash"  ? bash_completion(commands)
                           : *shell == "zsh" ? zsh_completion(commands)
                                             : fish_completion(commands));
  });
}

}  // namespace hutch::cli
