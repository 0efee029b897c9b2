#include "cli/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/config_flags.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "config/config_table.h"

namespace hutch::cli {
namespace {

struct Row {
  const config::Field* field = nullptr;
  config::Origin origin;
};

// All of them; with a key that one, with a group's name all of that group.
Result<std::vector<Row>> choose(const config::Loaded& loaded, const std::string& key) {
  std::vector<Row> rows;
  const auto fields = config::fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const config::Field& field = fields[i];
    const bool wanted = key.empty() || field.key == key || field.key.starts_with(key + ".");
    // What has no sentence in the reference is for tests.
    if (wanted && !field.doc.empty()) rows.push_back({&field, loaded.origins[i]});
  }
  if (!rows.empty()) return rows;
  return fail(ErrorCode::config, fmt::format("unknown key \"{}\"{}", key, config::suggestion(key)));
}

// As --set takes it: without quotes, lists separated by commas.
std::string plain(const config::Field& field, const config::Config& config) {
  const config::Value value = config::value_in(field, config);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) {
    return fmt::format("{}", fmt::join(*list, ","));
  }
  return config::show(field, config);
}

void write_value(json::Writer& out, const config::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) out.string(*text);
  if (const auto* number = std::get_if<std::int64_t>(&value)) out.integer(*number);
  if (const auto* number = std::get_if<double>(&value)) out.number(*number);
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) {
    out.begin_array();
    for (const std::string& item : *list) out.string(item);
    out.end_array();
  }
}

std::string as_json(const config::Loaded& loaded, const std::vector<Row>& rows) {
  json::Writer out;
  out.begin_object();
  out.key("file").string(loaded.file);
  out.key("settings").begin_array();
  for (const Row& row : rows) {
    out.begin_object();
    out.key("key").string(row.field->key);
    out.key("value");
    write_value(out, config::value_in(*row.field, loaded.config));
    out.key("origin").string(config::origin_text(row.origin));
    out.key("changes").string(row.field->change == config::Change::live ? "at SIGHUP"
                                                                        : "at a start");
    out.end_object();
  }
  out.end_array();
  out.end_object();
  return out.take() + "\n";
}

std::string as_table(const config::Loaded& loaded, const std::vector<Row>& rows) {
  std::vector<std::string> values;
  std::size_t key_width = 3;
  std::size_t value_width = 5;
  for (const Row& row : rows) {
    values.push_back(config::show(*row.field, loaded.config));
    key_width = std::max(key_width, row.field->key.size());
    value_width = std::max(value_width, std::min<std::size_t>(values.back().size(), 40));
  }
  const auto line = [&](std::string_view key, std::string_view value, std::string_view origin) {
    return fmt::format("{:{}}  {:{}}  {}\n", key, key_width, value, value_width, origin);
  };
  std::string text = line("KEY", "VALUE", "ORIGIN");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += line(rows[i].field->key, values[i], config::origin_text(rows[i].origin));
  }
  return text;
}

struct Words {
  std::string key;
  bool as_json = false;
};

int run(const ConfigFlags& flags, const Words& words) {
  const auto loaded = config::load_with_origins(config_sources(flags));
  if (!loaded) return report(loaded.error());
  const auto rows = choose(*loaded, words.key);
  if (!rows) return report(rows.error());
  if (words.as_json) return print_data(as_json(*loaded, *rows));
  const bool single = rows->size() == 1 && rows->front().field->key == words.key;
  if (single) return print_data(plain(*rows->front().field, loaded->config) + "\n");
  return print_data(as_table(*loaded, *rows));
}

}  // namespace

void add_config_command(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("config", "Show the settings, and where each value comes from");
  const std::shared_ptr<ConfigFlags> flags = add_config_flags(*command);
  add_listener_flags(*command, *flags);
  auto words = std::make_shared<Words>();
  command->add_option("key", words->key, "One setting, or a group such as `limits`")
      ->option_text("KEY");
  command->add_flag("--json", words->as_json, "For scripts: one JSON object");
  command->footer(
      "\nThe settings are those that `hutch serve` has with the same flags. With the key of one\n"
      "setting only its value is printed. What the keys mean: `hutch docs config`.\n");
  command->callback([flags, words, &exit_code] { exit_code = run(*flags, *words); });
}

}  // namespace hutch::cli
