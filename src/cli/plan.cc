#include "cli/plan.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>

#include "cli/config_flags.h"
#include "cli/exit_code.h"
#include "cli/host_check.h"
#include "cli/image_lookup.h"
#include "cli/output.h"
#include "cli/wiring.h"
#include "image/recipe.h"
#include "plan/run_plan.h"
#include "warden/plan_host.h"

namespace hutch::cli {
namespace {

// The image as a server of this user would find it; without one, what its recipe says of it.
image::Image image_of(const config::Config& config, bool rootless,
                      std::vector<std::string>* assumed) {
  if (auto found = find_image(config.state_dir, config.image, rootless)) {
    image::Image& image = found->image;
    if (rootless && image.is_erofs) {
      image.path =
          image::Layout(config.state_dir).image_path(image.digest, image::Format::directory);
      image.is_erofs = false;
      assumed->push_back("The image is unpacked first, into " + image.path + ".");
    }
    return std::move(image);
  }
  image::Image image{.name = config.image, .digest = {}, .path = {}, .is_erofs = !rootless};
  const std::string missing =
      fmt::format("There is no image {} in {}", config.image, config.state_dir);
  const auto recipe =
      image::find_recipe(config.image, image::places_of_this_process(""), [] { return false; });
  if (recipe) {
    image.config = recipe->config;
    assumed->push_back(missing + ": what its recipe in " + recipe->directory + " says is taken.");
  } else {
    image.config.python = "/usr/bin/python3";
    assumed->push_back(missing + ", and no recipe: /usr/bin/python3 and no variables are taken.");
  }
  return image;
}

plan::IdRange subordinate_ids(const plan::HostFacts& facts, std::vector<std::string>* assumed) {
  const auto range = plan::enough_ids(facts.user.subordinate_uids, plan::kSubordinateIds);
  if (range) return *range;
  assumed->push_back(fmt::format("{} has no subordinate ids: those from {} up are taken.",
                                 facts.user.name, facts.user.subordinate_ids_free));
  return {facts.user.subordinate_ids_free, plan::kSubordinateIds};
}

Result<plan::RunPlan> decide(const config::Config& config) {
  const plan::HostFacts facts = host_facts(config);
  const plan::HostNeeds needs = host_needs(config);
  plan::RunPlan run;
  run.rootless = plan::is_rootless(facts);
  const image::Image image = image_of(config, run.rootless, &run.assumed);
  const warden::WardenOptions options =
      warden_options(config, image, {.uid = 0, .gid = 0, .subordinate = run.rootless});
  run.image = {image.name, image.digest, image.path, image.is_erofs};
  run.host = warden::plan_host(options);
  run.zone_base = warden::zone_base(options);
  run.cgroups = facts.cgroups.version;
  run.uid = facts.user.uid;
  run.findings = plan::judge(facts, needs);
  run.waived = config.waive;
  run.not_held = plan::limits_not_held(facts, needs);
  if (run.rootless && facts.user.is_root) {
    run.assumed.emplace_back("The user namespace that this is, is the one that serves.");
  } else if (run.rootless) {
    run.subordinate = subordinate_ids(facts, &run.assumed);
  } else {
    run.first_id = facts.uid_range_first;
    run.assumed.push_back(
        "No other server of root runs: each takes the next 65,536 ids of its own.");
  }
  run.assumed.push_back("The run gets the first slot: the processors and ids of others follow.");
  plan::PlanSpec spec = options.spec;
  spec.processes_by_rlimit = std::ranges::find(run.not_held, "processes") != run.not_held.end();
  run.plan = TRY(plan::make_plan(spec, run.host));
  return run;
}

}  // namespace

void add_plan_command(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("plan", "Show every decision about a run, before anything is done");
  const std::shared_ptr<ConfigFlags> flags = add_config_flags(*command);
  auto wants_json = std::make_shared<bool>(false);
  command->add_flag("--json", *wants_json, "For scripts: one JSON object");
  command->footer(
      "\nMounts, limits, namespaces, ids, steps and their order, filters, environment; what this\n"
      "host answers, and what could not be looked at and is assumed. Changes nothing, and needs\n"
      "neither root nor an image.\n");
  command->callback([flags, wants_json, &exit_code] {
    const Result<config::Config> config = load_config(*flags);
    const Result<plan::RunPlan> run = config ? decide(*config) : fail(config.error());
    if (!run) {
      exit_code = report(run.error());
      return;
    }
    exit_code = print_data(*wants_json ? plan::run_plan_json(*run) : plan::run_plan_text(*run));
  });
}

}  // namespace hutch::cli
