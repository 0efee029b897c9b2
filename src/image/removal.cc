#include "image/removal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "base/sys.h"
#include "image/lock.h"
#include "image/store.h"
#include "image/tree.h"

namespace hutch::image {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPrefixMin = 6;
// What is on its way out has this in front of its name: whoever finds it may go on removing it.
constexpr std::string_view kLeaving = ".removed-";

tl::unexpected<Error> refuse(ErrorCode code, std::string sentence) {
  return fail(code, std::move(sentence));
}

// Names directly below a directory; none where it cannot be read.
std::vector<std::string> names_below(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator it(directory, error);
  for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool is_real_directory(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// A store that this process may take things out of, with its lock.
class Store {
 public:
  // Nothing where there is no store.
  static Result<std::optional<Store>> open(const std::string& state_dir) {
    // The place that it is now, for the whole of the work: a link on the way may be exchanged.
    std::error_code unknown;
    const fs::path real = fs::weakly_canonical(state_dir, unknown);
    Store store(unknown ? state_dir : real.string());
    struct stat info {};
    if (::lstat(store.layout_.images.c_str(), &info) != 0) {
      if (sys::last_errno() == ENOENT) return std::optional<Store>();
      return fail(
          sys::last_error(ErrorCode::io, Step::none, "cannot look at " + store.layout_.images));
    }
    if (!S_ISDIR(info.st_mode)) {
      return refuse(ErrorCode::not_permitted,
                    fmt::format("{} is no directory but a link: name the state directory that the "
                                "images really lie in with --state-dir",
                                store.layout_.images));
    }
    if (info.st_uid != ::geteuid() || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
      return refuse(
          ErrorCode::not_permitted,
          fmt::format("{} belongs to uid {} (mode {:o}), and this is uid {}: only the "
                      "owner of a store that nobody else can write to removes from it",
                      store.layout_.images, info.st_uid, info.st_mode & 07777U, ::geteuid()));
    }
    const std::string above = fs::path(store.layout_.images).parent_path().string();
    if (::stat(above.c_str(), &info) != 0 || info.st_uid != ::geteuid() ||
        (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
      return refuse(ErrorCode::not_permitted,
                    fmt::format("{} is not this user's alone, so that others could exchange what "
                                "is to be removed: run: chown {} {} && chmod go-w {}",
                                above, ::geteuid(), above, above));
    }
    store.lock_ = TRY(lock_store(store.layout_));
    TRY(store.read_names());
    return std::optional<Store>(std::move(store));
  }

  const Layout& layout() const { return layout_; }
  void unlock() { lock_.reset(); }

  std::vector<std::string> digests() const {
    std::vector<std::string> digests;
    for (const std::string& name : names_below(layout_.images)) {
      if (name.ends_with(".json") && is_digest(name.substr(0, name.size() - 5))) {
        digests.push_back(name.substr(0, name.size() - 5));
      }
    }
    return digests;
  }

  std::vector<std::string> names_of(const std::string& digest) const {
    std::vector<std::string> names;
    for (const auto& [name, meant] : names_) {
      if (meant == digest) names.push_back(name);
    }
    return names;
  }

  Result<std::string> find(const std::string& word) const {
    if (const auto named = names_.find(word); named != names_.end()) return named->second;
    std::vector<std::string> found;
    for (const std::string& digest : digests()) {
      if (digest == word) return digest;
      if (word.size() >= kPrefixMin && digest.starts_with(word)) found.push_back(digest);
    }
    if (found.size() == 1) return found.front();
    if (found.size() > 1) {
      return refuse(ErrorCode::bad_request,
                    fmt::format("several images begin with {}: {}", word, fmt::join(found, ", ")));
    }
    return refuse(ErrorCode::no_image,
                  fmt::format("there is no image \"{}\" in {}; `hutch image ls` shows them", word,
                              layout_.images));
  }

  // Where the content of the image lies: as a file, as a directory, or both.
  std::vector<std::string> bodies(const std::string& digest) const {
    std::vector<std::string> paths;
    for (const Format format : {Format::erofs, Format::directory}) {
      std::string path = layout_.image_path(digest, format);
      struct stat info {};
      if (::lstat(path.c_str(), &info) == 0) paths.push_back(std::move(path));
    }
    return paths;
  }

  // Nobody finds the image any more afterwards; its content waits to be removed.
  Result<std::vector<std::string>> withdraw(const std::string& digest) {
    std::vector<Fd> locks;
    const std::vector<std::string> content = bodies(digest);
    for (const std::string& path : content) {
      Result<Fd> lock = take_from_users(path);
      // A link to nowhere: nobody can use that.
      if (!lock && lock.error().code == ErrorCode::not_found) continue;
      locks.push_back(TRY(std::move(lock)));
    }
    for (const std::string& name : names_of(digest)) TRY(unlink(layout_.ref_path(name)));
    TRY(unlink(layout_.metadata_path(digest)));
    std::vector<std::string> leaving;
    for (const std::string& path : content) {
      leaving.push_back(TRY(set_aside(path)));
    }
    return leaving;
  }

 private:
  // A removal that was killed may have left the name that this one would take.
  Result<std::string> set_aside(const std::string& path) const {
    const std::string stem =
        fmt::format("{}/{}{}", layout_.images, kLeaving, fs::path(path).filename().string());
    std::string target = stem;
    for (int number = 1; sys::exists(target); ++number) {
      target = fmt::format("{}.{}", stem, number);
    }
    std::error_code error;
    fs::rename(path, target, error);
    if (!error) return target;
    return fail(Error{ErrorCode::io, Step::none, error.value(), "cannot move " + path});
  }

  explicit Store(const std::string& state_dir) : layout_(state_dir) {}

  Status read_names() {
    if (!is_real_directory(layout_.refs)) return {};
    for (const std::string& name : names_below(layout_.refs)) {
      if (!is_image_name(name) || name.ends_with(".new")) continue;
      names_[name] = TRY(read_ref(layout_, name));
    }
    return {};
  }

  static Status unlink(const std::string& path) {
    if (::unlink(path.c_str()) == 0 || sys::last_errno() == ENOENT) return {};
    return fail(sys::last_error(ErrorCode::io, Step::none, "cannot remove " + path));
  }

  Layout layout_;
  Fd lock_;
  std::map<std::string, std::string> names_;  // to their digests
};

// What a dead build, an unpacking or a removal that was killed may have left. Called while the
// store's and the builds' locks are held.
std::vector<std::string> leftovers(const Store& store) {
  const Layout& layout = store.layout();
  std::vector<std::string> paths;
  const std::vector<std::string> known = store.digests();
  for (const std::string& name : names_below(layout.images)) {
    const std::string path = layout.images + "/" + name;
    const std::string stem = fs::path(name).stem().string();
    const bool content = is_digest(stem) && (name == stem || name.ends_with(".erofs"));
    const bool orphan =
        content && std::find(known.begin(), known.end(), stem) == known.end() && !is_held(path);
    if (orphan || name.starts_with(kLeaving) || name.ends_with(".new")) paths.push_back(path);
  }
  for (const std::string& digest : known) {
    if (store.bodies(digest).empty()) paths.push_back(layout.metadata_path(digest));
  }
  if (is_real_directory(layout.refs)) {
    for (const std::string& name : names_below(layout.refs)) {
      if (name.ends_with(".new")) paths.push_back(layout.refs + "/" + name);
    }
  }
  if (is_real_directory(layout.scratch)) {
    for (const std::string& name : names_below(layout.scratch)) {
      paths.push_back(layout.scratch + "/" + name);
    }
  }
  return paths;
}

Status remove_or_measure(const std::string& path, bool dry_run, std::uint64_t& freed) {
  if (!dry_run) return remove_tree(path, freed);
  freed += tree_disk_bytes(path);
  return {};
}

}  // namespace

Result<RemovedImage> remove_image(const std::string& state_dir, const std::string& word,
                                  NamedImages named) {
  auto store = TRY(Store::open(state_dir));
  if (!store) {
    return refuse(ErrorCode::no_image, fmt::format("there are no images in {}", state_dir));
  }
  RemovedImage removed;
  removed.digest = TRY(store->find(word));
  removed.names = store->names_of(removed.digest);
  if (!removed.names.empty() && named == NamedImages::refuse) {
    return refuse(ErrorCode::bad_request,
                  fmt::format("the name {0} means this image, and the next server that is started "
                              "needs it; to remove image and name: hutch image rm --force {1} "
                              "--state-dir {2}",
                              fmt::join(removed.names, ", "), word, state_dir));
  }
  const std::vector<std::string> leaving = TRY(store->withdraw(removed.digest));
  // A gigabyte takes its time, and a build that is done must not wait for it.
  store->unlock();
  for (const std::string& path : leaving) TRY(remove_tree(path, removed.freed_bytes));
  return removed;
}

Result<Pruned> prune(const PruneOptions& options) {
  Pruned pruned;
  const Layout layout(options.state_dir);
  // In the order in which a build takes them: its own lock, then the store's for a moment.
  std::optional<Fd> builds;
  if (is_real_directory(layout.images)) builds = try_builds_lock(layout);
  auto store = TRY(Store::open(options.state_dir));
  if (!store) return pruned;
  pruned.build_runs = !builds;
  std::vector<std::vector<std::string>> leaving;
  for (const std::string& digest : store->digests()) {
    if (!store->names_of(digest).empty() || store->bodies(digest).empty()) continue;
    if (options.dry_run) {
      const auto content = store->bodies(digest);
      const bool held = std::any_of(content.begin(), content.end(), is_held);
      if (held) {
        pruned.kept.push_back(digest);
      } else {
        pruned.images.push_back({.digest = digest});
        leaving.push_back(content);
      }
      continue;
    }
    auto withdrawn = store->withdraw(digest);
    if (!withdrawn && withdrawn.error().code != ErrorCode::state_in_use) {
      return fail(std::move(withdrawn).error());
    }
    if (!withdrawn) {
      pruned.kept.push_back(digest);
      continue;
    }
    pruned.images.push_back({.digest = digest});
    leaving.push_back(*std::move(withdrawn));
  }
  if (builds) {
    pruned.leftovers = leftovers(*store);
    // Those of this very call are counted as images.
    std::erase_if(pruned.leftovers, [&](const std::string& path) {
      return std::any_of(leaving.begin(), leaving.end(), [&](const auto& paths) {
        return std::find(paths.begin(), paths.end(), path) != paths.end();
      });
    });
  }
  store->unlock();
  for (std::size_t i = 0; i < leaving.size(); ++i) {
    for (const std::string& path : leaving[i]) {
      TRY(remove_or_measure(path, options.dry_run, pruned.images[i].freed_bytes));
    }
    pruned.freed_bytes += pruned.images[i].freed_bytes;
  }
  for (const std::string& path : pruned.leftovers) {
    TRY(remove_or_measure(path, options.dry_run, pruned.freed_bytes));
  }
  if (options.cache && builds && is_real_directory(layout.cache)) {
    TRY(remove_or_measure(layout.cache, options.dry_run, pruned.freed_bytes));
    pruned.cache = true;
  }
  return pruned;
}

}  // namespace hutch::image
