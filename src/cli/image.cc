#include "cli/image.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/json.h"
#include "base/sys.h"
#include "cli/config_flags.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/state_version.h"
#include "cli/stop_signals.h"
#include "cli/user_namespace.h"
#include "image/build.h"
#include "image/removal.h"
#include "image/store.h"
#include "image/unpack.h"

namespace hutch::cli {
namespace {

// What the verbs of `hutch image` were given.
struct Words {
  std::string state_dir;  // as typed; absolute once a verb runs
  std::string name;
  std::string recipe;
  std::string from;
  std::string format = "auto";
  bool force = false;
  bool as_json = false;
  bool cache = false;
  bool dry_run = false;
};

void say_word(std::string_view text) { print_chatter(fmt::format("{}\n", text)); }

// Shows the step a build is at: on a terminal one line that counts the seconds, else a line a step.
class Progress {
 public:
  explicit Progress(const Clock& clock)
      : clock_(clock), start_(clock.mono()), terminal_(::isatty(STDERR_FILENO) == 1) {
    if (!terminal_) return;
    painter_ = std::jthread([this](const std::stop_token& stop) {
      std::unique_lock lock(mutex_);
      while (!stop.stop_requested()) {
        paint();
        tick_.wait_for(lock, stop, std::chrono::milliseconds(250), [] { return false; });
      }
      fmt::print(stderr, "\r\033[K");
      std::fflush(stderr);
    });
  }

  void step(std::string_view text) {
    const std::lock_guard lock(mutex_);
    step_ = text;
    terminal_ ? paint() : say_word(fmt::format("[{:5.1f} s] {}", seconds(), step_));
  }
  void end() {
    if (!painter_.joinable()) return;
    painter_.request_stop();
    painter_.join();
  }
  double seconds() const { return std::chrono::duration<double>(clock_.mono() - start_).count(); }

 private:
  void paint() const {
    fmt::print(stderr, "\r\033[K[{:5.1f} s] {}", seconds(), step_);
    std::fflush(stderr);
  }

  const Clock& clock_;
  const Nanos start_;
  const bool terminal_;
  std::mutex mutex_;
  std::string step_;
  std::condition_variable_any tick_;
  std::jthread painter_;
};

image::Packing packing_of(std::string_view word) {
  if (word == "erofs") return image::Packing::erofs;
  if (word == "directory") return image::Packing::directory;
  return image::Packing::erofs_where_possible;
}

int build(const Words& words) {
  if (const Status usable = record_state_version(words.state_dir); !usable) {
    return report(usable.error());
  }
  const bool ordinary = is_ordinary_user();
  if (ordinary) {
    // Root of a user namespace is root enough: the image's files then belong to the user.
    if (const Status entered = enter_user_namespace(); !entered) return report(entered.error());
  }
  const StopSignals signals;
  const SystemClock clock;
  Progress progress(clock);
  const image::BuildOptions options{
      .state_dir = words.state_dir,
      .name = words.name,
      .places = image::places_of_this_process(words.recipe),
      .rebuild = words.force ? image::Rebuild::always : image::Rebuild::when_changed,
      .packing = ordinary ? image::Packing::directory : packing_of(words.format),
      .interrupt_fd = signals.fd(),
  };
  const auto built =
      image::build_image(options, clock, [&](std::string_view text) { progress.step(text); });
  progress.end();
  if (!built) {
    if (built.error().code != ErrorCode::cancelled) return report(built.error());
    say_word("interrupted; nothing is left but downloads, which the next build uses");
    return 128 + std::max(signals.take(), static_cast<int>(SIGHUP));
  }
  if (built->already_built) {
    say_word(fmt::format("{} is already built (digest {})", words.name, built->digest));
  } else {
    say_word(fmt::format("built {} in {:.1f} s: {}, {}", words.name, progress.seconds(),
                         image::human_bytes(built->size_bytes), built->path));
  }
  if (!words.as_json) return print_data(built->digest + "\n");
  json::Writer out;
  out.begin_object();
  out.key("digest").string(built->digest);
  out.key("path").string(built->path);
  out.key("size_bytes").unsigned_integer(built->size_bytes);
  out.key("already_built").boolean(built->already_built);
  out.end_object();
  return print_data(out.take() + "\n");
}

void write_names(json::Writer& out, const std::vector<std::string>& names) {
  out.begin_array();
  for (const std::string& name : names) out.string(name);
  out.end_array();
}

void write_image(json::Writer& out, const image::ImageInfo& info) {
  out.begin_object();
  out.key("name").string(info.metadata.config.name);
  out.key("digest").string(info.metadata.digest);
  out.key("current").boolean(info.current);
  out.key("in_use").boolean(info.held);
  out.key("created").string(info.metadata.created);
  out.key("size_bytes").unsigned_integer(info.metadata.size_bytes);
  out.key("format").string(info.metadata.format == image::Format::erofs ? "erofs" : "directory");
  out.key("path").string(info.path);
  out.key("packages").begin_array();
  for (const image::Package& package : info.metadata.packages) {
    out.begin_object();
    out.key("kind").string(package.kind);
    out.key("name").string(package.name);
    out.key("version").string(package.version);
    out.end_object();
  }
  out.end_array();
  out.end_object();
}

int list(const Words& words) {
  const auto images = image::list_images(words.state_dir);
  if (!images) return report(images.error());
  if (words.as_json) {
    json::Writer out;
    out.begin_array();
    for (const image::ImageInfo& info : *images) write_image(out, info);
    out.end_array();
    return print_data(out.take() + "\n");
  }
  if (images->empty()) {
    say_word(
        fmt::format("no images in {0}; build one with: hutch image build python --state-dir {0}",
                    words.state_dir));
    return 0;
  }
  std::string text = fmt::format("{:<12} {:<12} {:<20} {:>8} {:>8}  {}\n", "NAME", "DIGEST",
                                 "CREATED", "SIZE", "PACKAGES", "STATE");
  for (const image::ImageInfo& info : *images) {
    text += fmt::format("{:<12} {:<12} {:<20} {:>8} {:>8}  {}{}\n", info.metadata.config.name,
                        info.metadata.digest.substr(0, 12), info.metadata.created,
                        image::human_bytes(info.metadata.size_bytes), info.metadata.packages.size(),
                        info.current ? "current" : "replaced", info.held ? ", in use" : "");
  }
  return print_data(text);
}

// An image that an ordinary user has built has files of that user's subordinate ids, which only
// root of the user's namespace can remove. Who cannot enter it may still own all there is.
void become_owner() {
  if (is_ordinary_user()) ignore_error(enter_user_namespace());
}

int remove(const Words& words) {
  become_owner();
  const auto removed =
      image::remove_image(words.state_dir, words.name,
                          words.force ? image::NamedImages::remove : image::NamedImages::refuse);
  if (!removed) return report(removed.error());
  if (words.as_json) {
    json::Writer out;
    out.begin_object();
    out.key("digest").string(removed->digest);
    out.key("names");
    write_names(out, removed->names);
    out.key("freed_bytes").unsigned_integer(removed->freed_bytes);
    out.end_object();
    return print_data(out.take() + "\n");
  }
  say_word(fmt::format("removed; {} are free again", image::human_bytes(removed->freed_bytes)));
  return print_data(removed->digest + "\n");
}

std::string as_json(const image::Pruned& pruned, bool dry_run) {
  json::Writer out;
  out.begin_object();
  out.key("dry_run").boolean(dry_run);
  out.key("images").begin_array();
  for (const image::RemovedImage& one : pruned.images) {
    out.begin_object();
    out.key("digest").string(one.digest);
    out.key("freed_bytes").unsigned_integer(one.freed_bytes);
    out.end_object();
  }
  out.end_array();
  out.key("kept_in_use");
  write_names(out, pruned.kept);
  out.key("leftovers");
  write_names(out, pruned.leftovers);
  out.key("cache").boolean(pruned.cache);
  out.key("build_runs").boolean(pruned.build_runs);
  out.key("freed_bytes").unsigned_integer(pruned.freed_bytes);
  out.end_object();
  return out.take() + "\n";
}

int prune(const Words& words) {
  become_owner();
  const auto pruned =
      image::prune({.state_dir = words.state_dir, .cache = words.cache, .dry_run = words.dry_run});
  if (!pruned) return report(pruned.error());
  if (words.as_json) return print_data(as_json(*pruned, words.dry_run));
  std::string text;
  for (const image::RemovedImage& one : pruned->images) {
    text += fmt::format("image {}  {}\n", one.digest, image::human_bytes(one.freed_bytes));
  }
  for (const std::string& path : pruned->leftovers) text += fmt::format("leftover {}\n", path);
  if (pruned->cache) text += "downloads\n";
  for (const std::string& digest : pruned->kept) {
    say_word(fmt::format("kept {}: a server or a run uses it", digest));
  }
  if (pruned->build_runs) say_word("a build runs: what it may need was not looked at");
  say_word(
      fmt::format("{} {}", image::human_bytes(pruned->freed_bytes),
                  words.dry_run ? "would be free again; nothing was removed" : "are free again"));
  return print_data(text);
}

int show_place(const Words& words, const std::string& digest, const std::string& path) {
  if (!words.as_json) return print_data(path + "\n");
  json::Writer out;
  out.begin_object();
  out.key("digest").string(digest);
  out.key("path").string(path);
  out.end_object();
  return print_data(out.take() + "\n");
}

int unpack(const Words& words) {
  const StopSignals signals;
  const image::UnpackOptions options{
      .from_state_dir = words.from.empty() ? words.state_dir : words.from,
      .to_state_dir = words.state_dir,
      .name = words.name,
      .interrupt_fd = signals.fd()};
  const auto unpacked = image::unpack_image(options, [](std::string_view text) { say_word(text); });
  if (unpacked) return show_place(words, unpacked->digest, unpacked->path);
  if (unpacked.error().code != ErrorCode::cancelled) return report(unpacked.error());
  return 128 + std::max(signals.take(), static_cast<int>(SIGHUP));
}

int path(const Words& words) {
  const auto found = image::open_image(words.state_dir, words.name);
  return found ? show_place(words, found->digest, found->path) : report(found.error());
}

// Where the images lie: as typed, or as the settings say.
Status settle_state_dir(Words& words) {
  if (!words.state_dir.empty()) {
    words.state_dir = absolute_path(words.state_dir);
    return {};
  }
  words.state_dir = TRY(load_config({})).state_dir;
  return {};
}

CLI::App* add_verb(CLI::App& image, const std::shared_ptr<Words>& words, int& exit_code,
                   const char* name, const char* about, int (*run)(const Words&)) {
  CLI::App* command = image.add_subcommand(name, about);
  command
      ->add_option("--state-dir", words->state_dir,
                   "Where images live [as the settings say; /var/lib/hutch as root]")
      ->check(not_empty)
      ->option_text("DIR");
  command->add_flag("--json", words->as_json, "For scripts: JSON");
  command->callback([words, run, &exit_code] {
    Status usable = settle_state_dir(*words);
    if (usable) usable = check_state_version(words->state_dir);
    exit_code = usable ? run(*words) : report(usable.error());
  });
  return command;
}

}  // namespace

void add_image_commands(CLI::App& app, int& exit_code) {
  const auto words = std::make_shared<Words>();
  CLI::App* image =
      app.add_subcommand("image", "Build, list and remove the images that sandboxes start from");
  image->require_subcommand(1);
  const auto verb = [&](const char* name, const char* about, int (*run)(const Words&)) {
    return add_verb(*image, words, exit_code, name, about, run);
  };
  CLI::App* build_verb =
      verb("build", "Build an image, or do nothing when it is up to date", build);
  build_verb->add_option("name", words->name, "Name of the image")->required();
  build_verb->add_option("--recipe", words->recipe, "Directory of the recipe")->option_text("DIR");
  build_verb
      ->add_option("--format", words->format,
                   "erofs (a file), directory, or auto: erofs where the kernel has it")
      ->check(CLI::IsMember({"auto", "erofs", "directory"}))
      ->capture_default_str();
  build_verb->add_flag("--force", words->force, "Build even if the recipe has not changed");

  verb("ls", "List the images", list);

  CLI::App* unpack_verb =
      verb("unpack", "Make a directory of an image file, for users who cannot mount it", unpack);
  unpack_verb->add_option("name", words->name, "Name or digest of the image")->required();
  unpack_verb->add_option("--from", words->from, "State directory that has the image; only read")
      ->option_text("DIR [the same]");

  CLI::App* path_verb = verb("path", "Print where an image is", path);
  path_verb->add_option("name", words->name, "Name or digest of the image")->required();

  CLI::App* remove_verb = verb("rm", "Remove one image", remove);
  remove_verb
      ->add_option("name", words->name,
                   "Name or digest of the image, or its first 6 digits or more")
      ->required();
  remove_verb->add_flag("--force", words->force, "Even if a name means it; the name goes, too");
  remove_verb->footer("\nAn image that a server or a run uses is never removed.\n");

  CLI::App* prune_verb = verb("prune", "Remove what nobody needs any more", prune);
  prune_verb->add_flag("--cache", words->cache, "The downloads of builds as well");
  prune_verb->add_flag("--dry-run", words->dry_run, "Only say what would go");
  prune_verb->footer(
      "\nThat is: images that no name means, and what builds that were killed have left. Images "
      "that\n"
      "a server or a run uses stay, and so does, while a build runs, all that it may need.\n");
}

}  // namespace hutch::cli
