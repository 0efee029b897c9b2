#include "cli/man.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/sys.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "config/config_table.h"
#include "hutch_version.h"

namespace hutch::cli {
namespace {

constexpr std::string_view kAbout =
    R"(Hutch runs the code that AI agents write. A snippet comes in, runs
in a sandbox that was made for it alone and stood ready before it came, and what it printed, the
files it wrote and how it ended go back. The sandbox holds no credential, has no network but its own
loopback, and is destroyed afterwards.)";

struct Place {
  std::string_view path;
  std::string_view what;
};

constexpr Place kFiles[] = {
    {"/etc/hutch/config.toml", "The settings of `hutch.service`; see `hutch-config(5)`."},
    {"/var/lib/hutch", "The state directory of root: images, locks, pid files."},
    {"~/.local/state/hutch", "The state directory of everybody else."},
    {"/usr/share/hutch/images", "The recipes that `hutch image build` builds from."},
};

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char letter) { return std::toupper(letter); });
  return text;
}

// One character as roff prints it, whatever it means to roff.
std::string_view glyph(char letter) {
  switch (letter) {
    case '\\': return "\\e";
    case '-': return "\\-";
    case '\'': return "\\(aq";
    case '`': return "\\(ga";
    case '^': return "\\(ha";
    case '~': return "\\(ti";
    default: return {};
  }
}

std::string bold(std::string_view text) { return fmt::format("\\fB{}\\fR", man_text(text)); }
std::string italic(std::string_view text) { return fmt::format("\\fI{}\\fR", man_text(text)); }

std::string paragraph(std::string_view text) { return man_text(text) + "\n"; }
std::string as_it_stands(std::string_view text) {
  while (!text.empty() && text.front() == '\n') text.remove_prefix(1);
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  return text.empty() ? std::string() : fmt::format(".nf\n{}\n.fi\n", man_text(text));
}

// The date stays empty: a page depends on the program alone.
std::string head(std::string_view title, int section, std::string_view about) {
  std::string name(title);
  return fmt::format(".TH \"{}\" \"{}\" \"\" \"hutch {}\" \"Hutch\"\n.SH NAME\n{} \\- {}\n",
                     man_text(upper(name)), section, kVersion, man_text(title), man_text(about));
}

std::vector<const CLI::App*> shown_commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) {
    return !command->get_name().empty() && !command->get_group().empty();
  });
}

std::vector<const CLI::Option*> shown_options(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return !option->get_group().empty(); });
}

std::string usage(const CLI::App& app, const std::string& name) {
  std::string line = bold(name);
  const auto options = shown_options(app);
  if (std::ranges::any_of(options, [](auto* option) { return option->nonpositional(); })) {
    line += " [" + italic("options") + "]";
  }
  for (const CLI::Option* option : options) {
    if (!option->get_positional()) continue;
    std::string word = italic(option->get_name(true, false));
    if (option->get_expected_max() > 1) word += "...";
    line += option->get_required() ? " " + word : " [" + word + "]";
  }
  return line;
}

// "-h, --help" in bold, and what stands behind it.
std::string option_heading(const CLI::Option& option) {
  if (!option.nonpositional()) return italic(option.get_name(true, false));
  std::string names;
  for (const std::string& name : CLI::detail::split(option.get_name(false, true), ',')) {
    names += (names.empty() ? "" : ", ") + bold(name);
  }
  if (!option.get_option_text().empty()) return names + " " + italic(option.get_option_text());
  if (option.get_type_size() == 0) return names;
  names += " " + italic(option.get_type_name());
  if (!option.get_default_str().empty()) {
    names += fmt::format(" [{}]", man_text(option.get_default_str()));
  }
  return names;
}

std::string option_list(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : shown_options(app)) {
    text +=
        fmt::format(".TP\n{}\n{}", option_heading(*option), paragraph(option->get_description()));
  }
  return text;
}

// The commands below `app`, each with what it takes; `name` is app's own full name.
std::string command_sections(const CLI::App& app, const std::string& name) {
  std::string text;
  for (const CLI::App* command : shown_commands(app)) {
    const std::string full = name + " " + command->get_name();
    text += fmt::format(".SS {}\n{}", man_text(full), paragraph(command->get_description() + "."));
    text += fmt::format(".PP\n{}\n{}", usage(*command, full), option_list(*command));
    if (!command->get_footer().empty()) text += ".PP\n" + as_it_stands(command->get_footer());
    text += command_sections(*command, full);
  }
  return text;
}

std::string see_also(const CLI::App& app, std::string_view own) {
  std::string text;
  const auto add = [&](const std::string& page, int section) {
    if (fmt::format("{}.{}", page, section) == own) return;
    text += fmt::format("{}{}({})", text.empty() ? "" : ",\n", bold(page), section);
  };
  add("hutch", 1);
  for (const CLI::App* command : shown_commands(app)) add("hutch-" + command->get_name(), 1);
  add("hutch-config", 5);
  return ".SH SEE ALSO\n" + text + "\n";
}

std::string page_of_all(const CLI::App& app) {
  std::string text = head("hutch", 1, "run the code that AI agents write, in sandboxes");
  text += fmt::format(".SH SYNOPSIS\n{} {} [{}]\n", bold("hutch"), italic("command"),
                      italic("arguments"));
  text += ".SH DESCRIPTION\n" + paragraph(kAbout) + ".SH COMMANDS\n";
  for (const CLI::App* command : shown_commands(app)) {
    text += fmt::format(".TP\n{}\n{}", bold(command->get_name()),
                        paragraph(command->get_description() + "."));
  }
  text += ".SH OPTIONS\n" + option_list(app);
  text += ".SH FILES\n";
  for (const Place& place : kFiles) {
    text += fmt::format(".TP\n{}\n{}", italic(place.path), paragraph(place.what));
  }
  text += ".SH EXIT STATUS\n" + as_it_stands(exit_code_help());
  text +=
      ".PP\n" + bold("hutch run") + "\nends as the program did that it ran; its page says how.\n";
  text += ".SH EXAMPLES\n" + as_it_stands(app.get_footer());
  return text + see_also(app, "hutch.1");
}

std::string page_of(const CLI::App& app, const CLI::App& command) {
  const std::string title = "hutch-" + command.get_name();
  const std::string full = "hutch " + command.get_name();
  std::string text = head(title, 1, command.get_description());
  const auto inner = shown_commands(command);
  text += ".SH SYNOPSIS\n";
  if (inner.empty()) text += usage(command, full) + "\n";
  for (const CLI::App* verb : inner) {
    text +=
        (verb == inner.front() ? "" : ".br\n") + usage(*verb, full + " " + verb->get_name()) + "\n";
  }
  text += ".SH DESCRIPTION\n" + paragraph(command.get_description() + ".");
  if (!command.get_footer().empty()) text += ".PP\n" + as_it_stands(command.get_footer());
  text += ".SH OPTIONS\n" + option_list(command);
  if (!inner.empty()) text += ".SH COMMANDS\n" + command_sections(command, full);
  return text + see_also(app, title + ".1");
}

std::string_view kind_words(config::Kind kind) {
  switch (kind) {
    case config::Kind::size: return "a size";
    case config::Kind::count: return "an integer";
    case config::Kind::duration: return "an integer of milliseconds";
    case config::Kind::number: return "a number";
    case config::Kind::text: return "a string";
    case config::Kind::list: return "an array of strings";
  }
  return "";
}

std::string range_words(const config::Field& field) {
  if (field.kind == config::Kind::text || field.kind == config::Kind::list) return "";
  if (field.kind != config::Kind::size) return fmt::format(", {} to {}", field.min, field.max);
  return fmt::format(", {} to {}", config::format_size(static_cast<std::uint64_t>(field.min)),
                     config::format_size(static_cast<std::uint64_t>(field.max)));
}

// What docs/config.md says before its tables, without its heading and the word on where it is from.
std::string introduction(std::string_view markdown) {
  std::string text;
  int paragraphs = 0;
  for (std::size_t at = 0; at < markdown.size();) {
    constexpr std::string_view kFence = "```";
    const std::string_view rest = markdown.substr(at);
    if (rest.starts_with("## ")) break;
    const bool code = rest.starts_with(kFence);
    const std::size_t found = rest.find(code ? "\n```\n" : "\n\n");
    const std::size_t size = found == std::string_view::npos ? rest.size() : found;
    if (code) {
      text += ".PP\n" + as_it_stands(rest.substr(0, size).substr(rest.find('\n')));
    } else if (++paragraphs > 2) {
      text += (text.empty() ? "" : ".PP\n") + paragraph(rest.substr(0, size));
    }
    at += size + (code ? kFence.size() + 2 : 1);
    while (at < markdown.size() && markdown[at] == '\n') ++at;
  }
  return text;
}

std::string page_of_settings(const CLI::App& app) {
  std::string text = head("hutch-config", 5, "the settings of Hutch");
  text += ".SH DESCRIPTION\n" + introduction(config::reference_markdown()) + ".SH SETTINGS\n";
  const config::Config defaults;
  std::string_view group;
  for (const config::Field& field : config::fields()) {
    if (field.doc.empty()) continue;
    const std::size_t dot = field.key.find('.');
    const std::string_view now = dot == std::string_view::npos ? "" : field.key.substr(0, dot);
    if (now != group) text += fmt::format(".SS [{}]\n", man_text(now));
    group = now;
    const std::string value = field.default_words.empty() ? config::show(field, defaults)
                                                          : std::string(field.default_words);
    text +=
        fmt::format(".TP\n{}\n{}.br\nIs {}{}; by default {}; changes at {}.\n", bold(field.key),
                    paragraph(field.doc), kind_words(field.kind), man_text(range_words(field)),
                    man_text(value), field.change == config::Change::live ? "SIGHUP" : "a start");
  }
  return text + see_also(app, "hutch-config.5");
}

int write_pages(const CLI::App& app, const std::string& directory) {
  if (const Status made = sys::make_directories(directory, 0755); !made)
    return report(made.error());
  std::string names;
  for (const ManPage& page : man_pages(app)) {
    const std::string path = directory + "/" + page.name;
    const Status written = sys::write_file_atomic(path, page.text, 0644);
    if (!written) return report(written.error());
    names += path + "\n";
  }
  return print_data(names);
}

}  // namespace

std::string man_text(std::string_view text) {
  std::string roff;
  bool line_begins = true;
  std::size_t closing = 0;  // where the backtick stands that ends what is bold now
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if (line_begins && (letter == '.' || letter == '\'')) roff += "\\&";
    line_begins = letter == '\n';
    if (letter == '`') {
      const std::size_t next = text.find('`', at + 1);
      if (closing == at && at != 0) {
        roff += "\\fR";
        closing = 0;
        continue;
      }
      if (closing == 0 && next != std::string_view::npos && text[at + 1] != '\n') {
        roff += "\\fB";
        closing = next;
        continue;
      }
    }
    const std::string_view special = glyph(letter);
    special.empty() ? roff.push_back(letter) : void(roff.append(special));
  }
  return roff;
}

std::vector<ManPage> man_pages(const CLI::App& app) {
  std::vector<ManPage> pages{{"hutch.1", page_of_all(app)}};
  for (const CLI::App* command : shown_commands(app)) {
    pages.push_back({fmt::format("hutch-{}.1", command->get_name()), page_of(app, *command)});
  }
  pages.push_back({"hutch-config.5", page_of_settings(app)});
  return pages;
}

void add_man_command(CLI::App& app, int& exit_code) {
  CLI::App* docs = app.get_subcommand("docs");
  CLI::App* man = docs->add_subcommand("man", "Write the manual pages into a directory");
  auto directory = std::make_shared<std::string>();
  man->add_option("directory", *directory, "Where the pages go; made where it is missing")
      ->required();
  man->callback([&app, directory, &exit_code] { exit_code = write_pages(app, *directory); });
}

}  // namespace hutch::cli
