#include "cli/image.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/sys.h"
#include "cli/exit_code.h"
#include "cli/user_namespace.h"
#include "cli/state_version.h"
#include "config/state_dir.h"
#include "image/build.h"
#include "image/store.h"
#include "image/unpack.h"

namespace hutch::cli {
namespace {

namespace json = boost::json;

// What the verbs of `hutch image` were given.
struct Words {
  std::string state_dir = config::default_state_dir();
  std::string name;
  std::string recipe;
  std::string from;
  std::string format = "auto";
  bool force = false;
  bool as_json = false;

  std::string absolute_state_dir() const {
    std::error_code error;
    const auto path = std::filesystem::absolute(state_dir, error).lexically_normal();
    std::string text = error ? state_dir : path.string();
    while (text.size() > 1 && text.back() == '/') text.pop_back();
    return text;
  }
};

void say(std::FILE* stream, std::string_view text) {
  fmt::print(stream, "{}\n", text);
  std::fflush(stream);
}

// Turns the signals that end a command into a readable descriptor for as long as it lives.
class Interrupts {
 public:
  Interrupts() {
    sigset_t wanted;
    sigemptyset(&wanted);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&wanted, number);
    ::pthread_sigmask(SIG_BLOCK, &wanted, &before_);
    fd_ = Fd(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  ~Interrupts() {
    received();  // a pending one would end the process the moment it is unblocked
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  int fd() const { return fd_.get(); }
  // The signal that came, 0 when none did.
  int received() const {
    signalfd_siginfo info{};
    const auto got = sys::read_some(fd_.get(), std::as_writable_bytes(std::span(&info, 1)));
    return got && got->size == sizeof(info) ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  sigset_t before_{};
  Fd fd_;
};

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
    terminal_ ? paint() : say(stderr, fmt::format("[{:5.1f} s] {}", seconds(), step_));
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
  if (const Status usable = record_state_version(words.absolute_state_dir()); !usable) {
    return report(usable.error());
  }
  const bool ordinary = is_ordinary_user();
  if (ordinary) {
    // Root of a user namespace is root enough: the image's files then belong to the user.
    if (const Status entered = enter_user_namespace(); !entered) return report(entered.error());
  }
  const Interrupts interrupts;
  const SystemClock clock;
  Progress progress(clock);
  const image::BuildOptions options{
      .state_dir = words.absolute_state_dir(),
      .name = words.name,
      .places = image::places_of_this_process(words.recipe),
      .rebuild = words.force ? image::Rebuild::always : image::Rebuild::when_changed,
      .packing = ordinary ? image::Packing::directory : packing_of(words.format),
      .interrupt_fd = interrupts.fd(),
  };
  const auto built =
      image::build_image(options, clock, [&](std::string_view text) { progress.step(text); });
  progress.end();
  if (!built) {
    if (built.error().code != ErrorCode::cancelled) return report(built.error());
    say(stderr, "interrupted; nothing is left but downloads, which the next build uses");
    return 128 + std::max(interrupts.received(), static_cast<int>(SIGHUP));
  }
  if (built->already_built) {
    say(stderr, fmt::format("{} is already built (digest {})", words.name, built->digest));
  } else {
    say(stderr, fmt::format("built {} in {:.1f} s: {}, {}", words.name, progress.seconds(),
                            image::human_bytes(built->size_bytes), built->path));
  }
  say(stdout, built->digest);
  return 0;
}

json::object listed(const image::ImageInfo& info) {
  json::array packages;
  for (const image::Package& package : info.metadata.packages) {
    packages.push_back(
        {{"kind", package.kind}, {"name", package.name}, {"version", package.version}});
  }
  return {{"name", info.metadata.config.name},
          {"digest", info.metadata.digest},
          {"current", info.current},
          {"created", info.metadata.created},
          {"size_bytes", info.metadata.size_bytes},
          {"format", info.metadata.format == image::Format::erofs ? "erofs" : "directory"},
          {"path", info.path},
          {"packages", std::move(packages)}};
}

int list(const Words& words) {
  const auto images = image::list_images(words.absolute_state_dir());
  if (!images) return report(images.error());
  if (words.as_json) {
    json::array all;
    for (const image::ImageInfo& info : *images) all.push_back(listed(info));
    say(stdout, json::serialize(all));
    return 0;
  }
  if (images->empty()) {
    say(stderr,
        fmt::format("no images in {}; build one with: hutch image build python --state-dir {}",
                    words.absolute_state_dir(), words.absolute_state_dir()));
    return 0;
  }
  say(stdout, fmt::format("{:<12} {:<12} {:<20} {:>8} {:>8}  {}", "NAME", "DIGEST", "CREATED",
                          "SIZE", "PACKAGES", "STATE"));
  for (const image::ImageInfo& info : *images) {
    say(stdout, fmt::format("{:<12} {:<12} {:<20} {:>8} {:>8}  {}", info.metadata.config.name,
                            info.metadata.digest.substr(0, 12), info.metadata.created,
                            image::human_bytes(info.metadata.size_bytes),
                            info.metadata.packages.size(), info.current ? "current" : "replaced"));
  }
  return 0;
}

int unpack(const Words& words) {
  const Interrupts interrupts;
  const image::UnpackOptions options{
      .from_state_dir = words.from.empty() ? words.absolute_state_dir() : words.from,
      .to_state_dir = words.absolute_state_dir(),
      .name = words.name,
      .interrupt_fd = interrupts.fd()};
  const auto unpacked =
      image::unpack_image(options, [](std::string_view text) { say(stderr, text); });
  if (unpacked) say(stdout, unpacked->path);
  if (unpacked) return 0;
  if (unpacked.error().code != ErrorCode::cancelled) return report(unpacked.error());
  return 128 + std::max(interrupts.received(), static_cast<int>(SIGHUP));
}

int path(const Words& words) {
  const auto found = image::open_image(words.absolute_state_dir(), words.name);
  if (!found) return report(found.error());
  say(stdout, found->path);
  return 0;
}

}  // namespace

void add_image_commands(CLI::App& app, int& exit_code) {
  const auto words = std::make_shared<Words>();
  CLI::App* image =
      app.add_subcommand("image", "Build and list the images that sandboxes start from");
  image->require_subcommand(1);

  const auto verb = [&](const char* name, const char* about, int (*run)(const Words&)) {
    CLI::App* command = image->add_subcommand(name, about);
    command->add_option("--state-dir", words->state_dir, "Where images live")
        ->capture_default_str();
    command->callback([words, run, &exit_code] {
      const Status usable = check_state_version(words->absolute_state_dir());
      exit_code = usable ? run(*words) : report(usable.error());
    });
    return command;
  };
  CLI::App* build_verb =
      verb("build", "Build an image, or do nothing when it is up to date", build);
  build_verb->add_option("name", words->name, "Name of the image")->required();
  build_verb->add_option("--recipe", words->recipe, "Directory of the recipe");
  build_verb
      ->add_option("--format", words->format,
                   "erofs (a file), directory, or auto: erofs where the kernel has it")
      ->check(CLI::IsMember({"auto", "erofs", "directory"}))
      ->capture_default_str();
  build_verb->add_flag("--force", words->force, "Build even if the recipe has not changed");

  CLI::App* list_verb = verb("ls", "List the images", list);
  list_verb->add_flag("--json", words->as_json, "Print JSON, packages included");

  CLI::App* unpack_verb =
      verb("unpack", "Make a directory of an image file, for users who cannot mount it", unpack);
  unpack_verb->add_option("name", words->name, "Name or digest of the image")->required();
  unpack_verb->add_option("--from", words->from, "State directory that has the image; only read")
      ->option_text("DIR [the same]");

  CLI::App* path_verb = verb("path", "Print where an image is", path);
  path_verb->add_option("name", words->name, "Name or digest of the image")->required();
}

}  // namespace hutch::cli
