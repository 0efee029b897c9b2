#include "cli/user_namespace.h"

#include <fmt/format.h>
#include <grp.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <span>
#include <string>
#include <vector>

#include "base/sys.h"
#include "image/spawn.h"
#include "isolation/launch.h"
#include "plan/host_read.h"
#include "plan/id_map.h"

namespace hutch::cli {
namespace {

// One of the two maps, of users or of groups.
struct Ids {
  std::string tool;     // what writes it
  std::uint32_t own;    // the user's own id
  plan::IdRange range;  // of subordinate ones
};

Result<plan::IdRange> find_range(const char* file, const std::vector<plan::IdRange>& ranges,
                                 const std::string& user) {
  if (const auto range = plan::enough_ids(ranges, plan::kSubordinateIds)) return *range;
  const std::string what = ranges.empty()
                               ? fmt::format("{} has no line for {}", file, user)
                               : fmt::format("{} gives {} fewer than {} ids in one piece", file,
                                             user, plan::kSubordinateIds);
  return fail(ErrorCode::unsupported_host,
              fmt::format("{}, and sandboxes need them. As root, type: "
                          "echo '{}:100000:{}' >> {} (with a first number that nobody else has "
                          "there)",
                          what, user, plan::kSubordinateIds, file));
}

Result<std::string> find_tool(const char* name, const plan::Tool& tool) {
  if (!tool.path.empty()) return tool.path;
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
Status write_map(pid_t process, const Ids& ids) {
  image::Command command;
  command.argv = {ids.tool,
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
                          ids.tool, ended.code, last_line(ended.tail)));
}

// The child that stays outside: waits until its parent has moved, writes both maps, and says in a
// text what went wrong; an empty one means that all is well.
[[noreturn]] void serve_maps(pid_t parent, const std::array<Ids, 2>& all, const sys::Pipe& moved,
                             const sys::Pipe& answer) {
  std::byte byte{};
  const auto got = sys::read_some(moved.read.get(), std::span(&byte, 1));
  if (!got || got->size == 0) ::_exit(1);
  for (const Ids& ids : all) {
    if (const Status written = write_map(parent, ids); !written) {
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

Status move(const std::array<Ids, 2>& all) {
  sys::Pipe moved = TRY(sys::pipe());
  sys::Pipe answer = TRY(sys::pipe());
  const pid_t self = ::getpid();
  const long writer = isolation::fork_process();
  if (writer < 0) return fail(sys::last_error(ErrorCode::io, Step::none, "cannot fork"));
  if (writer == 0) {
    moved.write.reset();
    answer.read.reset();
    serve_maps(self, all, moved, answer);
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
  const auto map = plan::parse_id_map(sys::read_file("/proc/self/uid_map", 65536).value_or(""));
  return !map.empty() && !plan::maps_every_id(map);
}

}  // namespace

bool is_ordinary_user() { return ::geteuid() != 0 || is_inside(); }

Status enter_user_namespace() {
  // Root of somebody else's user namespace: that one is used, with the ids that it has.
  if (::geteuid() == 0) return {};
  // As `hutch doctor` sees it; everything that can be missing is looked at before anything changes.
  const plan::UserFacts user = plan::read_user("");
  const std::array<Ids, 2> all{
      Ids{TRY(find_tool("newuidmap", user.newuidmap)), ::geteuid(),
          TRY(find_range("/etc/subuid", user.subordinate_uids, user.name))},
      Ids{TRY(find_tool("newgidmap", user.newgidmap)), ::getegid(),
          TRY(find_range("/etc/subgid", user.subordinate_gids, user.name))}};
  return move(all);
}

}  // namespace hutch::cli
