#include "cli/user_namespace.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "base/sys.h"
#include "image/spawn.h"
#include "isolation/launch.h"
#include "plan/subordinate_ids.h"
#include "warden/options.h"

namespace hutch::cli {
namespace {

constexpr std::size_t kTextMax = 16 << 20;

struct Ids {
  const char* file;     // where the user's ranges are listed
  const char* tool;     // what writes the map
  std::uint32_t own;    // the user's own id
  plan::IdRange range;  // of subordinate ones
};

std::string user_name() {
  const passwd* entry = ::getpwuid(::getuid());
  return entry != nullptr ? entry->pw_name : std::to_string(::getuid());
}

Result<plan::IdRange> find_range(const char* file, const std::string& user) {
  const std::string text = sys::read_file(file, kTextMax).value_or("");
  const auto ranges = plan::parse_subordinate_ids(text, user, ::getuid());
  if (const auto range = plan::enough_ids(ranges, warden::kSubordinateIds)) return *range;
  const std::string what = ranges.empty()
                               ? fmt::format("{} has no line for {}", file, user)
                               : fmt::format("{} gives {} fewer than {} ids in one piece", file,
                                             user, warden::kSubordinateIds);
  return fail(ErrorCode::unsupported_host,
              fmt::format("{}, and sandboxes need them. As root, type: "
                          "echo '{}:100000:{}' >> {} (with a first number that nobody else has "
                          "there)",
                          what, user, warden::kSubordinateIds, file));
}

Result<std::string> find_tool(const char* name) {
  std::string path = image::find_program(name);
  if (!path.empty()) return path;
  return fail(ErrorCode::unsupported_host,
              fmt::format("there is no {} here, which hands subordinate ids out. As root, type: "
                          "apt-get install uidmap",
                          name));
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

// In the namespace that the ids are from: "0 is the user, 1 and on are the subordinate ids".
Status write_map(pid_t process, const Ids& ids, const std::string& tool) {
  image::Command command;
  command.argv = {tool,
                  std::to_string(process),
                  "0",
                  std::to_string(ids.own),
                  "1",
                  "1",
                  std::to_string(ids.range.first),
                  std::to_string(ids.range.count)};
  command.log_path = "/dev/null";
  const image::Exit ended = TRY(image::run(command));
  if (ended.code == 0) return {};
  return fail(ErrorCode::unsupported_host,
              fmt::format("{} refuses (exit status {}): {}. It has to be setuid root or to have "
                          "file capabilities; as root, type: apt-get install --reinstall uidmap",
                          tool, ended.code, last_line(ended.tail)));
}

// The child that stays outside: waits until its parent has moved, writes both maps, and says in a
// text what went wrong; an empty one means that all is well.
[[noreturn]] void serve_maps(pid_t parent, const std::array<Ids, 2>& all,
                             const std::array<std::string, 2>& tools, const sys::Pipe& moved,
                             const sys::Pipe& answer) {
  std::byte byte{};
  const auto got = sys::read_some(moved.read.get(), std::span(&byte, 1));
  if (!got || got->size == 0) ::_exit(1);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (const Status written = write_map(parent, all[i], tools[i]); !written) {
      ignore_error(sys::write_all(answer.write.get(), written.error().message));
      ::_exit(1);
    }
  }
  ::_exit(0);
}

std::string read_to_end(const Fd& fd) {
  std::string text;
  std::array<std::byte, 1024> chunk{};
  for (;;) {
    const auto got = sys::read_some(fd.get(), chunk);
    if (!got || got->size == 0) return text;
    text.append(reinterpret_cast<const char*>(chunk.data()), got->size);
  }
}

Status become_root_inside() {
  if (::setgroups(0, nullptr) != 0 || ::setresgid(0, 0, 0) != 0 || ::setresuid(0, 0, 0) != 0) {
    return fail(sys::last_error(ErrorCode::unsupported_host, Step::none,
                                "cannot become root of the user namespace"));
  }
  return {};
}

Status move(const std::array<Ids, 2>& all, const std::array<std::string, 2>& tools) {
  sys::Pipe moved = TRY(sys::pipe());
  sys::Pipe answer = TRY(sys::pipe());
  const pid_t self = ::getpid();
  const long writer = isolation::fork_process();
  if (writer < 0) return fail(sys::last_error(ErrorCode::io, Step::none, "cannot fork"));
  if (writer == 0) {
    moved.write.reset();
    answer.read.reset();
    serve_maps(self, all, tools, moved, answer);
  }
  moved.read.reset();
  answer.write.reset();
  const int refused = isolation::leave_into_new_namespaces(CLONE_NEWUSER);
  if (refused == 0) {
    const std::byte byte{1};
    ignore_error(sys::write_some(moved.write.get(), std::span(&byte, 1)));
  }
  moved.write.reset();
  const std::string trouble = read_to_end(answer.read);
  int status = 0;
  ::waitpid(static_cast<pid_t>(writer), &status, 0);
  if (refused != 0) {
    return fail(Error{ErrorCode::unsupported_host, Step::none, refused,
                      "this host lets no ordinary user make a user namespace; `hutch doctor` says "
                      "which switch forbids it"});
  }
  if (!trouble.empty() || status != 0) {
    return fail(ErrorCode::unsupported_host,
                trouble.empty() ? "the ids of the user namespace could not be written" : trouble);
  }
  return become_root_inside();
}

// Not every id of the host is mapped: a container without root, say.
bool is_inside() {
  const std::string map = sys::read_file("/proc/self/uid_map", 65536).value_or("");
  std::istringstream numbers(map);
  std::uint64_t inside = 0;
  std::uint64_t outside = 0;
  std::uint64_t count = 0;
  numbers >> inside >> outside >> count;
  return !map.empty() && (inside != 0 || outside != 0 || count < 4'294'967'295);
}

}  // namespace

bool is_ordinary_user() { return ::geteuid() != 0 || is_inside(); }

Status enter_user_namespace() {
  // Root of somebody else's user namespace: that one is used, with the ids that it has.
  if (::geteuid() == 0) return {};
  const std::string user = user_name();
  // Everything that can be missing is looked at before anything is changed.
  const std::array<std::string, 2> tools{TRY(find_tool("newuidmap")), TRY(find_tool("newgidmap"))};
  const std::array<Ids, 2> all{
      Ids{"/etc/subuid", "newuidmap", ::geteuid(), TRY(find_range("/etc/subuid", user))},
      Ids{"/etc/subgid", "newgidmap", ::getegid(), TRY(find_range("/etc/subgid", user))}};
  return move(all, tools);
}

}  // namespace hutch::cli
