#include "cli/docs.h"

#include <fmt/format.h>

#include <memory>
#include <sstream>
#include <string>

#include "base/json.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/version.h"
#include "config/config.h"

extern "C" const char hutch_openapi_start[];
extern "C" const char hutch_openapi_end[];
extern "C" const char hutch_errors_start[];
extern "C" const char hutch_errors_end[];

namespace hutch::cli {
namespace {

std::string embedded(const char* begin, const char* end) { return {begin, end}; }

std::string trimmed(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  text.erase(0, text.find_first_not_of('\n'));
  return text;
}

// A document as a part of a larger one: every heading one step lower, outside of code.
std::string demoted(const std::string& markdown) {
  std::string out;
  bool code = false;
  std::istringstream lines(markdown);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) code = !code;
    if (!code && line.starts_with('#')) out += '#';
    out += line + "\n";
  }
  return out;
}

void add_commands(const CLI::App& app, const std::string& name, std::string& text) {
  const std::string help = app.get_formatter()->make_help(&app, name, CLI::AppFormatMode::Normal);
  text += fmt::format("\n## {}\n\n```\n{}\n```\n", name, trimmed(help));
  for (const CLI::App* command : app.get_subcommands([](const CLI::App* one) {
         return !one->get_name().empty() && !one->get_group().empty();
       })) {
    add_commands(*command, name + " " + command->get_name(), text);
  }
}

std::string commands_markdown(const CLI::App& app) {
  std::string text =
      "# Commands\n\nData goes to standard output, words go to standard error. `--json` on every "
      "command\nthat prints data makes that data JSON. Nothing is coloured; progress is shown on a "
      "terminal only.\n";
  add_commands(app, "hutch", text);
  return text;
}

std::string api_markdown() {
  return fmt::format(
      "# HTTP API\n\nA server serves this document at `/openapi.yaml`.\n\n"
      "```yaml\n{}\n```\n",
      trimmed(embedded(hutch_openapi_start, hutch_openapi_end)));
}

std::string exit_codes_markdown() {
  return fmt::format(
      "# Exit codes\n\nOf every command but `hutch run`:\n\n```\n{}\n```\n\n"
      "69 also means that no server answers. `--watch` ends with 130 at Ctrl-C.\n\n"
      "`hutch run` ends as the program ends, in the way of docker:\n\n```\n"
      "   n  the program's own\n"
      " 124  the deadline ended it\n"
      " 125  Hutch itself failed, or was used in a wrong way\n"
      " 126  the file cannot be read\n"
      " 127  there is no such file\n"
      "128+n a signal ended it: 137 for SIGKILL, also when memory ran out; 130 for Ctrl-C\n```\n",
      trimmed(std::string(exit_code_help())));
}

std::string errors_markdown() { return embedded(hutch_errors_start, hutch_errors_end); }

std::string full_markdown(const CLI::App& app) {
  std::string text = fmt::format(
      "# {}\n\nThe whole reference, written by `hutch docs --full`: commands, settings, the HTTP "
      "API, exit\ncodes, error texts.\n",
      version_line());
  for (const std::string& part : {commands_markdown(app), config::reference_markdown(),
                                  api_markdown(), exit_codes_markdown(), errors_markdown()}) {
    text += "\n" + demoted(part);
  }
  return text;
}

struct Topic {
  const char* name;
  const char* about;
  std::string (*text)(const CLI::App& app);
};

constexpr Topic kTopics[] = {
    {"commands", "Every command with its flags, as Markdown", commands_markdown},
    {"config", "All settings, as Markdown",
     [](const CLI::App&) { return config::reference_markdown(); }},
    {"api", "The HTTP API, as OpenAPI 3.0 in YAML",
     [](const CLI::App&) { return embedded(hutch_openapi_start, hutch_openapi_end); }},
    {"exit-codes", "How commands end, as Markdown",
     [](const CLI::App&) { return exit_codes_markdown(); }},
    {"errors", "What errors say and what to do, as Markdown",
     [](const CLI::App&) { return errors_markdown(); }},
};

std::string topic_list(const CLI::App& docs, bool as_json) {
  json::Writer out;
  out.begin_array();
  std::string text;
  for (const CLI::App* topic : docs.get_subcommands([](const CLI::App*) { return true; })) {
    text += fmt::format("{:<12}{}\n", topic->get_name(), topic->get_description());
    out.begin_object();
    out.key("topic").string(topic->get_name());
    out.key("about").string(topic->get_description());
    out.end_object();
  }
  out.end_array();
  return as_json ? out.take() + "\n" : text;
}

}  // namespace

void add_docs_command(CLI::App& app, int& exit_code) {
  CLI::App* docs = app.add_subcommand("docs", "Print the reference: all of it, or one topic");
  auto full = std::make_shared<bool>(false);
  auto as_json = std::make_shared<bool>(false);
  docs->add_flag("--full", *full, "Everything in one Markdown document, for people and for agents");
  docs->add_flag("--json", *as_json, "The list of topics as JSON");
  docs->footer("\nWithout a topic and without --full: the list of topics.\n");
  for (const Topic& topic : kTopics) {
    docs->add_subcommand(topic.name, topic.about)->callback([&app, &topic, &exit_code] {
      exit_code = print_data(topic.text(app));
    });
  }
  docs->callback([docs, &app, full, as_json, &exit_code] {
    if (!docs->get_subcommands().empty()) return;
    exit_code = print_data(*full ? full_markdown(app) : topic_list(*docs, *as_json));
  });
}

}  // namespace hutch::cli
