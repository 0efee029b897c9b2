#include "image/build.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>

#include "base/rollback.h"
#include "base/sys.h"
#include "base/units.h"
#include "image/lock.h"
#include "image/spawn.h"
#include "image/tree.h"

namespace hutch::image {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPackagesBytesMax = 4_MiB;
constexpr std::size_t kLogLinesShown = 15;
// Every file of an image carries this time (2024-01-01 UTC), so that one tree gives one digest.
constexpr std::string_view kImageTime = "1704067200";
constexpr std::string_view kImageUuid = "00000000-0000-0000-0000-000000000000";

std::uint64_t bytes_free(const std::string& path) {
  std::error_code error;
  const fs::space_info space = fs::space(path, error);
  return error ? 0 : space.available;
}

// What cannot be removed now is swept by the next build.
void discard(const std::string& path) {
  std::uint64_t freed_bytes = 0;
  ignore_error(remove_tree(path, freed_bytes));
}

std::string last_lines(std::string_view text, std::size_t count) {
  std::size_t start = text.size();
  while (start > 0 && (text[start - 1] == '\n' || text[start - 1] == '\r')) --start;
  const std::size_t end = start;
  for (; start > 0; --start) {
    if (text[start - 1] == '\n' && --count == 0) break;
  }
  return std::string(text.substr(start, end - start));
}

std::vector<Package> parse_packages(std::string_view text) {
  std::vector<Package> packages;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    Package package;
    if (std::getline(fields, package.kind, '\t') && std::getline(fields, package.name, '\t') &&
        std::getline(fields, package.version, '\t')) {
      packages.push_back(std::move(package));
    }
  }
  return packages;
}

// One call of build_image. The members are what all of its steps share.
class Build {
 public:
  Build(const BuildOptions& options, const Clock& clock,
        const std::function<void(std::string_view)>& progress)
      : options_(options),
        clock_(clock),
        progress_(progress),
        layout_(options.state_dir),
        work_(fmt::format("{}/{}", layout_.scratch, options.name)),
        log_(fmt::format("{}/{}-build.log", layout_.cache, options.name)) {}

  Result<BuildResult> run() {
    recipe_ = TRY(find_recipe(options_.name, options_.places, stop()));
    if (auto built = already_built()) return *built;
    TRY(check_host());
    for (const std::string& directory : {layout_.images, layout_.refs, layout_.cache}) {
      TRY(with_space(sys::make_directories(directory, 0755)));
    }
    const Fd lock = TRY(take_builds_lock(layout_, options_.interrupt_fd, progress_));
    // Whoever held the lock may have built the very same recipe.
    if (auto built = already_built()) return *built;
    sweep();
    Rollback rollback;
    rollback.add([this] { discard(layout_.scratch); });
    TRY(check_space());
    TRY(with_space(sys::make_directories(work_ + "/scratch", 0755)));
    TRY(with_space(sys::write_file_atomic(log_, "", 0644)));
    return make();
  }

 private:
  Stop stop() const {
    return [fd = options_.interrupt_fd] {
      pollfd interrupt{fd, POLLIN, 0};
      return fd >= 0 && ::poll(&interrupt, 1, 0) > 0;
    };
  }

  void step(std::string_view text) {
    step_ = text;
    progress_(text);
  }

  std::optional<BuildResult> already_built() const {
    if (options_.rebuild == Rebuild::always) return std::nullopt;
    const auto known = read_metadata(options_.state_dir, options_.name);
    if (!known || known->recipe_digest != recipe_.digest) return std::nullopt;
    const bool other_packing =
        (options_.packing == Packing::erofs && known->format != Format::erofs) ||
        (options_.packing == Packing::directory && known->format != Format::directory);
    if (other_packing) return std::nullopt;
    return BuildResult{known->digest, layout_.image_path(known->digest, known->format),
                       known->size_bytes, true};
  }

  Status check_host() const {
    if (::geteuid() != 0) {
      return fail(ErrorCode::not_permitted,
                  fmt::format("building an image needs root, because the files of the image belong "
                              "to root; type: sudo hutch image build {} --state-dir {}",
                              options_.name, options_.state_dir));
    }
    std::set<std::string> packages;
    std::vector<std::string> commands;
    for (const auto& [command, package] : recipe_.config.build_tools) {
      if (!find_program(command).empty()) continue;
      commands.push_back(command);
      packages.insert(package);
    }
    if (packages.empty()) return {};
    return fail(ErrorCode::not_found,
                fmt::format("missing: {}; type: apt-get install {}", fmt::join(commands, ", "),
                            fmt::join(packages, " ")));
  }

  Status check_space() {
    const std::uint64_t free = bytes_free(layout_.images);
    if (free >= recipe_.config.build_space_bytes) return {};
    return fail(ErrorCode::disk_full,
                fmt::format("building {} needs about {} in {}, and {} are free; free some space "
                            "there or choose another place with --state-dir",
                            options_.name, human_bytes(recipe_.config.build_space_bytes),
                            layout_.images, human_bytes(free)));
  }

  // What a build that was killed has left behind.
  void sweep() const {
    discard(layout_.scratch);
    for (const std::string& directory : {layout_.images, layout_.refs}) {
      std::error_code error;
      for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
        if (entry.path().extension() == ".new") fs::remove(entry.path(), error);
      }
    }
  }

  // Says of a full disk what a plain "no space left" leaves out.
  Status with_space(Status status) const {
    if (!status && status.error().code == ErrorCode::disk_full) return fail(disk_full());
    return status;
  }
  Error disk_full() const {
    return Error{ErrorCode::disk_full, Step::none, 0,
                 disk_full_text(layout_.images, free_after_failure_, step_)};
  }

  Result<Exit> spawn(Command command) {
    command.log_path = log_;
    command.interrupt_fd = options_.interrupt_fd;
    command.on_interrupt = [this] { progress_("interrupted; cleaning up"); };
    Exit ended = TRY(image::run(command));
    if (ended.code == 0) return ended;
    free_after_failure_ = bytes_free(layout_.images);
    if (ended.disk_full) return fail(disk_full());
    return fail(ErrorCode::io, failure_text(command, ended));
  }

  // A recipe that knows what is wrong says so in a last line that starts with "error: ".
  std::string failure_text(const Command& command, const Exit& ended) const {
    const std::string last = last_lines(ended.tail, 1);
    if (constexpr std::string_view kMark = "error: "; last.starts_with(kMark)) {
      return fmt::format("{} (while {}; the whole log is {})", last.substr(kMark.size()), step_,
                         log_);
    }
    return fmt::format(
        "{} failed (exit status {}) while {}; the log {} ends with:\n{}",
        command.kind == Command::Kind::namespaced ? "the recipe" : command.argv.front(), ended.code,
        step_, log_, last_lines(ended.tail, kLogLinesShown));
  }

  Result<BuildResult> make() {
    const std::string rootfs = work_ + "/rootfs";
    TRY(run_recipe(rootfs));
    Metadata metadata;
    metadata.config = recipe_.config;
    metadata.recipe_digest = recipe_.digest;
    metadata.created = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                                   fmt::gmtime(static_cast<std::time_t>(clock_.wall_ms() / 1000)));
    if (auto list = sys::read_file(work_ + "/scratch/packages.tsv", kPackagesBytesMax)) {
      metadata.packages = parse_packages(*list);
    }
    const std::string staged = TRY(pack(rootfs, metadata));
    if (stop()()) return fail(ErrorCode::cancelled, "interrupted");
    TRY(with_space(publish(options_.state_dir, metadata, staged)));
    return BuildResult{metadata.digest, layout_.image_path(metadata.digest, metadata.format),
                       metadata.size_bytes, false};
  }

  // In a mount and pid namespace of its own, and with a signal for the death of this process: so no
  // mount and no process of a build outlives it, whatever kills it.
  Status run_recipe(const std::string& rootfs) {
    Command command;
    command.kind = Command::Kind::namespaced;
    command.argv = {"setpriv",       "--pdeathsig",  "KILL",
                    "unshare",       "--mount",      "--pid",
                    "--fork",        "--kill-child", "--mount-proc",
                    "--propagation", "private",      recipe_.directory + "/build",
                    rootfs,          layout_.cache,  work_ + "/scratch"};
    command.on_line = [this](std::string_view line) { step(line); };
    step("starting");
    TRY(spawn(std::move(command)));
    if (!sys::exists(rootfs)) {
      return fail(ErrorCode::io, recipe_.directory + "/build made no root file system");
    }
    return {};
  }

  // Fills in digest, size and format; returns what is to be moved into the store.
  Result<std::string> pack(const std::string& rootfs, Metadata& metadata) {
    metadata.format = TRY(choose_format());
    if (metadata.format == Format::directory) {
      step("hashing");
      metadata.digest = TRY(tree_digest(rootfs, TreeKind::image, stop()));
      metadata.size_bytes = tree_bytes(rootfs);
      step("writing to disk");
      const Fd written = TRY(sys::open(rootfs, O_RDONLY | O_DIRECTORY));
      if (::syncfs(written.get()) != 0) {
        return fail(sys::last_error(ErrorCode::io, Step::none, "cannot sync " + rootfs));
      }
      return rootfs;
    }
    step("packing");
    const std::string file = work_ + "/image.erofs";
    Command command;
    // Not compressed: the first start after boot is a quarter faster, and a file of the image can
    // be mapped as it lies on disk.
    command.argv = {"mkfs.erofs",
                    fmt::format("-T{}", kImageTime),
                    fmt::format("-U{}", kImageUuid),
                    "--all-root",
                    "-x-1",
                    file,
                    rootfs};
    TRY(spawn(std::move(command)));
    // Gone before anything is synced, or the disk would first have to write a tree nobody needs.
    discard(rootfs);
    step("hashing");
    metadata.digest = TRY(file_digest(file, stop()));
    std::error_code error;
    metadata.size_bytes = fs::file_size(file, error);
    step("writing to disk");
    const Fd written = TRY(sys::open(file, O_RDONLY));
    if (::fsync(written.get()) != 0) {
      return fail(sys::last_error(ErrorCode::io, Step::none, "cannot sync " + file));
    }
    return file;
  }

  Result<Format> choose_format() {
    if (options_.packing == Packing::directory) return Format::directory;
    if (kernel_has_erofs() && !find_program("mkfs.erofs").empty()) return Format::erofs;
    if (options_.packing == Packing::erofs_where_possible) return Format::directory;
    return fail(ErrorCode::unsupported_host,
                "an erofs image needs a kernel with erofs, and mkfs.erofs; type: "
                "apt-get install erofs-utils, or build with --format directory");
  }

  bool kernel_has_erofs() {
    const auto listed = [] {
      const auto text = sys::read_file("/proc/filesystems", 64_KiB);
      return text && text->find("\terofs\n") != std::string::npos;
    };
    if (listed()) return true;
    // The kernel may bring it as a module; without one the second look says so.
    Command modprobe;
    modprobe.argv = {"modprobe", "erofs"};
    modprobe.log_path = log_;
    ignore_error(image::run(modprobe));
    return listed();
  }

  static std::uint64_t tree_bytes(const std::string& path) {
    std::uint64_t sum = 0;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path, error)) {
      if (entry.is_regular_file(error) && !entry.is_symlink(error)) sum += entry.file_size(error);
    }
    return sum;
  }

  const BuildOptions& options_;
  const Clock& clock_;
  const std::function<void(std::string_view)>& progress_;
  const Layout layout_;
  const std::string work_;
  const std::string log_;
  Recipe recipe_;
  std::string step_ = "starting";
  std::uint64_t free_after_failure_ = 0;
};

}  // namespace

std::string human_bytes(std::uint64_t bytes) {
  if (bytes >= 1'000'000'000) return fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9);
  if (bytes >= 1'000'000) return fmt::format("{:.0f} MB", static_cast<double>(bytes) / 1e6);
  return fmt::format("{:.0f} kB", static_cast<double>(bytes) / 1e3);
}

std::string disk_full_text(std::string_view directory, std::uint64_t bytes_free,
                           std::string_view step) {
  return fmt::format(
      "no space left in {} ({} free) while {}; nothing but downloads was kept. Free some space "
      "there "
      "or choose another place with --state-dir, then build again",
      directory, human_bytes(bytes_free), step);
}

Result<BuildResult> build_image(const BuildOptions& options, const Clock& clock,
                                const std::function<void(std::string_view)>& progress) {
  if (!is_image_name(options.name)) {
    return fail(ErrorCode::bad_request,
                fmt::format("\"{}\" is no name of an image (a-z, 0-9, dot, dash, underscore)",
                            options.name));
  }
  return Build(options, clock, progress).run();
}

}  // namespace hutch::image
