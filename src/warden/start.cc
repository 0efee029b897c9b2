#include "warden/start.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/json.hpp>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/log.h"
#include "base/sys.h"
#include "isolation/cgroup.h"
#include "isolation/launch.h"
#include "isolation/mounts.h"
#include "warden/pid_of.h"
#include "warden/plan_host.h"
#include "warden/warden.h"
#include "warden/zone.h"

extern "C" const char hutch_guest_start[];
extern "C" const char hutch_guest_end[];
extern "C" const char hutch_sitecustomize_start[];
extern "C" const char hutch_sitecustomize_end[];

namespace hutch::warden {
namespace {

// The first message of the warden: whether it stands. A failure in words, cut to fit.
struct StartReport {
  std::int32_t code = -1;  // -1: ready; else the ErrorCode
  Step step = Step::none;
  std::uint16_t unheld = 0;  // bit N: kLimitNames[N] is waived and not held
  std::int32_t sys_errno = 0;
  char message[500]{};
};

std::string_view embedded(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

// What an operator and a test need to find everything that this instance has on the host.
Status write_ledger(const WardenOptions& options, const isolation::CgroupTree& cgroups,
                    const UidRange& range, const Zone& zone, pid_t server) {
  boost::json::object ledger;
  boost::json::array prefixes;
  for (const std::string& root : cgroups.directories()) prefixes.emplace_back(root);
  ledger["cgroup_prefixes"] = std::move(prefixes);
  ledger["uid_range"] = {range.on_host, range.count};
  // The ids of a user's subordinate range follow each other on the host as well.
  ledger["server_uid"] = options.server_uid + (range.on_host - range.first);
  ledger["server_pid"] = server;
  ledger["warden_pid"] = ::getpid();
  ledger["anchor_pid"] = zone.anchor_pid();
  ledger["launcher_pid"] = TRY(pid_of(zone.launcher_pidfd()));
  return sys::write_file_atomic(options.state_dir + "/instance.json",
                                boost::json::serialize(ledger) + "\n", 0644);
}

constexpr std::array<const char*, 3> kLimitNames{"memory", "processes", "cpus"};

std::uint16_t unheld(const isolation::CgroupTree& tree) {
  std::uint16_t bits = 0;
  for (std::size_t i = 0; i < kLimitNames.size(); ++i) {
    if (!isolation::holds(tree, kLimitNames[i])) bits |= static_cast<std::uint16_t>(1U << i);
  }
  return bits;
}

std::vector<std::string> limit_names(std::uint16_t bits) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kLimitNames.size(); ++i) {
    if ((bits >> i & 1U) != 0) names.emplace_back(kLimitNames[i]);
  }
  return names;
}

void tell_start(int socket, const StartReport& report) {
  ignore_error(sys::send_message(socket, std::as_bytes(std::span(&report, 1)), {}));
}

Status failpoint([[maybe_unused]] const WardenOptions& options, [[maybe_unused]] Step step) {
#ifdef HUTCH_TESTING
  if (options.fail_step == step) {
    return fail(Error{ErrorCode::setup_failed, step, EIO, "failpoint"});
  }
#endif
  return {};
}

struct Cgroups {
  std::unique_ptr<isolation::CgroupKernel> kernel;
  std::unique_ptr<isolation::CgroupTree> tree;
};

std::uint64_t swap_bytes() {
  const auto text = sys::read_file("/proc/meminfo", 65536);
  if (!text) return 0;
  return isolation::parse_counter(*text, "SwapTotal:") * 1024;
}

// Our groups, with what an instance that was killed has left in them cleared away first.
Result<Cgroups> open_cgroups(const WardenOptions& options, pid_t server) {
  Cgroups groups;
  groups.kernel = std::make_unique<isolation::CgroupKernel>();
  const auto layout = TRY(isolation::detect_cgroups(*groups.kernel, ""));
  isolation::CgroupTreeOptions tree_options;
  tree_options.instance = options.instance;
  tree_options.swap_bytes = swap_bytes();
  tree_options.own_processes = {server, ::getpid()};
  tree_options.waived = options.waived;
  groups.tree = TRY(isolation::open_cgroup_tree(*groups.kernel, layout, tree_options));
  TRY(isolation::refuse_unenforced(groups.tree->refused()));
  constexpr int kRoundsMax = 500;
  for (int round = 0; round < kRoundsMax; ++round) {
    if (TRY(groups.tree->sweep("")) == 0) return groups;
    // Killed processes need a moment to be gone, and a v1 group has nothing to wait on.
    ::poll(nullptr, 0, 10);
  }
  return fail(
      ErrorCode::setup_failed, Step::cgroup_root,
      "sandboxes of an earlier server are still dying in " + groups.tree->directories().front());
}

// Everything in order: what fails here is told to whoever typed the command.
Result<int> serve(const WardenOptions& options, Fd& socket, pid_t server, Log& log) {
  const SystemClock clock;
  const plan::PlanHost host = plan_host(options);
  TRY(failpoint(options, Step::uid_range));
  const UidRange range = TRY(options.rootless ? take_subordinate_range() : take_uid_range());
  if (range.slots + 2 * options.slots_max > range.count) {
    return fail(ErrorCode::config, Step::uid_range,
                "runs.max and pool.ceiling ask for more sandboxes than there are user ids");
  }
  TRY(failpoint(options, Step::cgroup_root));
  const Cgroups cgroups = TRY(open_cgroups(options, server));
  plan::PlanSpec wanted = options.spec;
  wanted.processes_by_rlimit = !isolation::holds(*cgroups.tree, "processes");
  const plan::Plan plan = TRY(plan::make_plan(wanted, host));
  ZoneSpec spec;
  spec.path = host.zone_path;
  spec.image_path = options.image_path;
  spec.image_is_file = options.image_is_file;
  spec.first_id = range.first;
  spec.id_count = range.count;
  spec.rootless = options.rootless;
  spec.fail_step = options.fail_step;
  spec.guest_program = embedded(hutch_guest_start, hutch_guest_end);
  spec.sitecustomize = embedded(hutch_sitecustomize_start, hutch_sitecustomize_end);
  TRY(isolation::private_mount_namespace());
  if (options.rootless) {
    TRY(isolation::mount_tmpfs(zone_base(options), "size=64k,nr_inodes=8,mode=0755"));
  }
  TRY(sys::make_directories(spec.path, 0755));
  TRY(Zone::mount_template(spec, plan));
  Zone zone = TRY(Zone::start(spec, plan));
  TRY(write_ledger(options, *cgroups.tree, range, zone, server));
  StartReport ready;
  ready.unheld = unheld(*cgroups.tree);
  tell_start(socket.get(), ready);
  Warden warden(
      {options, plan, host, *cgroups.tree, zone, range.slots, std::move(socket), clock, log});
  const int status = warden.run();
  ignore_error(cgroups.tree->remove());  // what is left is swept by the next start
  // The server may not write to its own directory any more, and a number that is left here would
  // one day belong to somebody else.
  for (const char* name : {"/server.pid", "/warden.pid"}) {
    ::unlink((options.state_dir + name).c_str());
  }
  return status;
}

[[noreturn]] void become_warden(const WardenOptions& options, Fd socket, pid_t server) {
  // Ctrl-C reaches the whole foreground group; only the server decides when we end, by closing.
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1, SIGUSR2}) {
    ::signal(number, SIG_IGN);
  }
  ::prctl(PR_SET_NAME, "hutch-warden", 0, 0, 0);
  // Whoever has to clean up is killed last; a host that does not let us say so is a caution of
  // `hutch doctor`, not a reason to stop.
  ignore_error(sys::write_control("/proc/self/oom_score_adj", "-900"));
  const SystemClock clock;
  Log log(clock, {.fd = 2, .level = options.log_level, .process = "warden"});
  const auto status = serve(options, socket, server, log);
  if (!status) {
    const Error& error = status.error();
    StartReport report;
    report.code = static_cast<std::int32_t>(error.code);
    report.step = error.step;
    report.sys_errno = error.sys_errno;
    std::strncpy(report.message, error.message.c_str(), sizeof report.message - 1);
    tell_start(socket.get(), report);
    ::_exit(70);
  }
  ::_exit(*status);
}

}  // namespace

Result<WardenConnection> start_warden(const WardenOptions& options) {
  auto [ours, theirs] = TRY(sys::socket_pair(SOCK_SEQPACKET));
  const pid_t server = ::getpid();
  const long pid = isolation::fork_process();
  if (pid < 0) {
    return fail(sys::last_error(ErrorCode::setup_failed, Step::zone_clone, "cannot fork"));
  }
  if (pid == 0) {
    ours.reset();
    become_warden(options, std::move(theirs), server);
  }
  theirs.reset();
  StartReport report;
  const auto message =
      sys::receive_message(ours.get(), std::as_writable_bytes(std::span(&report, 1)));
  if (message && message->size == sizeof report && report.code == -1) {
    return WardenConnection{std::move(ours), static_cast<pid_t>(pid), limit_names(report.unheld)};
  }
  ours.reset();
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED);
  if (!message || message->size != sizeof report) {
    return fail(ErrorCode::warden_gone, "the privileged process ended at its start");
  }
  report.message[sizeof report.message - 1] = '\0';
  return fail(
      Error{static_cast<ErrorCode>(report.code), report.step, report.sys_errno, report.message});
}

}  // namespace hutch::warden
