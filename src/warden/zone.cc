#include "warden/zone.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/sys.h"
#include "isolation/launch.h"
#include "isolation/mounts.h"
#include "plan/launcher_wire.h"
#include "warden/zone_child.h"

namespace hutch::warden {
namespace {

tl::unexpected<Error> failed(Step step, std::string what) {
  return fail(sys::last_error(ErrorCode::setup_failed, step, std::move(what)));
}

Status failpoint([[maybe_unused]] const ZoneSpec& spec, [[maybe_unused]] Step step) {
#ifdef HUTCH_TESTING
  if (spec.fail_step == step) {
    return fail(Error{ErrorCode::setup_failed, step, EIO, "failpoint"});
  }
#endif
  return {};
}

Status write_new(const std::string& path, std::string_view bytes) {
  const Fd fd = TRY(sys::open(path, O_WRONLY | O_CREAT | O_EXCL, 0444));
  TRY(sys::write_all(fd.get(), bytes));
  // The umask is the server's affair; programs of every id read these files.
  if (::fchmod(fd.get(), 0444) != 0) return failed(Step::zone_root, "cannot set a mode");
  return {};
}

Status make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) != 0 || ::chmod(path.c_str(), 0755) != 0) {
    return failed(Step::zone_root, "cannot make the directory " + path);
  }
  return {};
}

// Figures for /proc, masks, and the interpreter's start file: a file system of its own, so that
// what is bound from it is read-only for everybody.
Status fill_extras(const std::string& extras, const ZoneSpec& spec, const plan::Plan& plan) {
  TRY(isolation::mount_tmpfs(extras, "size=1m,nr_inodes=64,mode=0755"));
  TRY(write_new(extras + "/empty", ""));
  TRY(make_directory(extras + "/nothing"));
  TRY(make_directory(extras + "/hutch"));
  TRY(write_new(extras + "/hutch/sitecustomize.py", spec.sitecustomize));
  for (const auto& [name, content] : plan.figures) TRY(write_new(extras + "/" + name, content));
  return isolation::restrict_mount(extras,
                                   MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
}

struct Device {
  const char* name;
  unsigned minor;
};
constexpr unsigned kMemoryMajor = 1;
constexpr Device kDevices[] = {
    {"null", 3}, {"zero", 5}, {"full", 7}, {"random", 8}, {"urandom", 9}};

Status fill_devices(const std::string& dev, bool rootless) {
  TRY(isolation::mount_tmpfs(dev, "size=64k,nr_inodes=32,mode=0755"));
  for (const Device& device : kDevices) {
    const std::string path = dev + "/" + device.name;
    // A user namespace may not make nodes, wherever it is root.
    TRY(rootless ? isolation::bind_device(std::string("/dev/") + device.name, path, kMemoryMajor,
                                          device.minor)
                 : isolation::make_device(path, kMemoryMajor, device.minor));
  }
  const std::pair<const char*, const char*> links[] = {{"/proc/self/fd", "/fd"},
                                                       {"/proc/self/fd/0", "/stdin"},
                                                       {"/proc/self/fd/1", "/stdout"},
                                                       {"/proc/self/fd/2", "/stderr"}};
  for (const auto& [target, name] : links) {
    if (::symlink(target, (dev + name).c_str()) != 0) {
      return failed(Step::zone_devices, "cannot make a link in /dev");
    }
  }
  TRY(make_directory(dev + "/shm"));
  return isolation::restrict_mount(dev, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC);
}

Status write_id_maps(pid_t pid, const ZoneSpec& spec) {
  const std::string map =
      "0 " + std::to_string(spec.first_id) + " " + std::to_string(spec.id_count);
  const std::string directory = "/proc/" + std::to_string(pid);
  TRY(sys::write_control(directory + "/uid_map", map));
  return sys::write_control(directory + "/gid_map", map);
}

Error report_error(const isolation::ActReport& report, const char* what) {
  return Error{ErrorCode::setup_failed, report.failed_step, report.sys_errno, what};
}

Result<sys::Message> receive_report(int socket, isolation::ActReport* report) {
  return sys::receive_message(socket, std::as_writable_bytes(std::span(report, 1)));
}

void wait_for(const Fd& pidfd) {
  siginfo_t info{};
  ::waitid(P_PIDFD, static_cast<id_t>(pidfd.get()), &info, WEXITED | __WALL);
}

Status go(int socket) {
  const std::byte byte{1};
  return sys::send_message(socket, std::span(&byte, 1), {});
}

}  // namespace

Status Zone::mount_template(const ZoneSpec& spec, const plan::Plan& plan) {
  TRY(isolation::mount_tmpfs(spec.path, "size=1m,nr_inodes=64,mode=0755"));
  for (const char* name : {"/R", "/E", "/S", "/proc"}) TRY(make_directory(spec.path + name));
  const std::string root = spec.path + "/R";
  TRY(failpoint(spec, Step::image_mount));
  if (spec.image_is_file) {
    TRY(isolation::mount_image_file(spec.image_path, root));
  } else {
    TRY(isolation::mount_image_directory(spec.image_path, root));
  }
  TRY(fill_extras(spec.path + "/E", spec, plan));
  TRY(failpoint(spec, Step::zone_devices));
  TRY(fill_devices(root + "/dev", spec.rootless));
  const std::string guest = root + plan::kGuestDirectory;
  TRY(isolation::bind_mount(spec.path + "/E/hutch", guest));
  TRY(isolation::restrict_mount(guest, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV));
  return isolation::restrict_mount(spec.path,
                                   MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

// The anchor: pid 1 of the zone. Returns when its program runs.
Status Zone::start_anchor(const ZoneSpec& spec, const plan::Plan& plan, const Fd& program) {
  const std::string actions = isolation::encode_actions(plan.zone);
  sys::Pipe lifeline = TRY(sys::pipe());
  auto [report, child_report] = TRY(sys::socket_pair(SOCK_SEQPACKET));
  ZoneChild child;
  child.actions = actions.data();
  child.actions_size = actions.size();
  child.report = child_report.get();
  child.lifeline = lifeline.read.get();
  child.program = program.get();
  child.fail_step = spec.fail_step;
  TRY(failpoint(spec, Step::zone_clone));
  const isolation::CloneResult anchor =
      isolation::clone_process(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC |
                               CLONE_NEWUTS | CLONE_NEWNET | CLONE_NEWCGROUP);
  if (anchor.pid == 0) become_anchor(child);
  if (anchor.pid < 0) {
    return fail(Error{ErrorCode::setup_failed, Step::zone_clone, anchor.sys_errno,
                      "cannot make the namespaces of the sandbox side"});
  }
  anchor_pidfd_ = Fd(anchor.pidfd);
  anchor_pid_ = static_cast<pid_t>(anchor.pid);
  lifeline_ = std::move(lifeline.write);
  child_report.reset();
  TRY(write_id_maps(anchor_pid_, spec));
  ignore_error(go(report.get()));  // a child that has failed already says so in its report
  isolation::ActReport outcome;
  if (TRY(receive_report(report.get(), &outcome)).size != 0) {
    return fail(report_error(outcome, "the sandbox side cannot be set up"));
  }
  return {};
}

// A process of the host enters the zone and clones the launcher there, as our child.
Result<Fd> Zone::clone_launcher(const ZoneSpec& spec, const Fd& program, const Fd& block,
                                const Fd& socket) {
  auto [report, maker_end] = TRY(sys::socket_pair(SOCK_SEQPACKET));
  ZoneChild child;
  child.program = program.get();
  child.report = maker_end.get();
  child.anchor = anchor_pidfd_.get();
  child.socket = socket.get();
  child.plan = block.get();
  child.fail_step = spec.fail_step;
  const isolation::CloneResult maker = isolation::clone_process(0);
  if (maker.pid == 0) become_launcher_maker(child);
  if (maker.pid < 0) {
    return fail(Error{ErrorCode::setup_failed, Step::launcher_start, maker.sys_errno,
                      "cannot start the launcher"});
  }
  const Fd maker_pidfd(maker.pidfd);
  maker_end.reset();
  isolation::ActReport outcome;
  sys::Message message = TRY(receive_report(report.get(), &outcome));
  wait_for(maker_pidfd);
  if (message.size == 0 || outcome.failed_step != Step::none || message.fds.size() != 1) {
    return fail(report_error(outcome, "the launcher cannot be started"));
  }
  return std::move(message.fds[0]);
}

Status Zone::start_launcher(const ZoneSpec& spec, const plan::Plan& plan, const Fd& program) {
  TRY(failpoint(spec, Step::launcher_plan));
  const Fd block = TRY(sys::memory_file("hutch-plan", plan::encode_plan(plan)));
  auto [socket, launcher_end] = TRY(sys::socket_pair(SOCK_SEQPACKET));
  launcher_pidfd_ = TRY(clone_launcher(spec, program, block, launcher_end));
  launcher_end.reset();
  launcher_socket_ = std::move(socket);
  plan::LaunchReply ready;
  const sys::Message message = TRY(
      sys::receive_message(launcher_socket_.get(), std::as_writable_bytes(std::span(&ready, 1))));
  if (message.size != sizeof ready) {
    return fail(ErrorCode::setup_failed, Step::launcher_start, "the launcher ended at its start");
  }
  return {};
}

Result<Zone> Zone::start(const ZoneSpec& spec, const plan::Plan& plan) {
  Zone zone;
  const Fd program = TRY(sys::memory_file("hutch-guest", spec.guest_program));
  TRY(zone.start_anchor(spec, plan, program));
  TRY(zone.start_launcher(spec, plan, program));
  return zone;
}

void Zone::release() {
  launcher_socket_.reset();
  lifeline_.reset();
}

void Zone::reap_launcher() {
  if (!launcher_pidfd_) return;
  wait_for(launcher_pidfd_);
  launcher_pidfd_.reset();
}

// The end of the anchor kills everything in its pid namespace, and is not complete before all of it
// is reaped: also a process that the launcher had just cloned and nobody has heard of yet.
Zone::~Zone() {
  release();
  for (const Fd* pidfd : {&launcher_pidfd_, &anchor_pidfd_}) {
    if (*pidfd) ::syscall(SYS_pidfd_send_signal, pidfd->get(), SIGKILL, nullptr, 0);
  }
  if (!anchor_pidfd_) return;
  siginfo_t info{};
  while (::waitid(P_ALL, 0, &info, WEXITED | __WALL) == 0) {
  }
}

}  // namespace hutch::warden
