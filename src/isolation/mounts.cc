#include "isolation/mounts.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstring>

#include "base/fd.h"
#include "base/sys.h"

namespace hutch::isolation {
namespace {

constexpr std::uint64_t kImageAttributes =
    MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME;

tl::unexpected<Error> failed(Step step, std::string what) {
  return fail(sys::last_error(ErrorCode::setup_failed, step, std::move(what)));
}

// Attaches a configured file system context at `target`.
Status attach(const Fd& context, const std::string& target) {
  if (::syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
    return failed(Step::image_mount, "cannot read the image as erofs");
  }
  const Fd mounted(
      static_cast<int>(::syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, kImageAttributes)));
  if (!mounted) return failed(Step::image_mount, "cannot mount the image");
  if (::syscall(SYS_move_mount, mounted.get(), "", AT_FDCWD, target.c_str(),
                MOVE_MOUNT_F_EMPTY_PATH) != 0) {
    return failed(Step::image_mount, "cannot attach the image");
  }
  return {};
}

// Named by a descriptor, so that no path of the host shows in anybody's mount table.
Status mount_erofs(const std::string& source, const std::string& target) {
  const Fd context(static_cast<int>(::syscall(SYS_fsopen, "erofs", FSOPEN_CLOEXEC)));
  if (!context) return failed(Step::image_mount, "this kernel has no erofs");
  if (::syscall(SYS_fsconfig, context.get(), FSCONFIG_SET_FLAG, "ro", nullptr, 0) != 0 ||
      ::syscall(SYS_fsconfig, context.get(), FSCONFIG_SET_STRING, "source", source.c_str(), 0) !=
          0) {
    return failed(Step::image_mount, "cannot prepare the image");
  }
  return attach(context, target);
}

struct Loop {
  std::string path;
  Fd device;  // it frees itself with its last user: held until the mount holds it
};

Result<Loop> attach_loop(const Fd& image) {
  const Fd control = TRY(sys::open("/dev/loop-control", O_RDWR));
  const int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
  if (number < 0) return failed(Step::image_mount, "no loop device is free");
  const std::string path = "/dev/loop" + std::to_string(number);
  Fd loop = TRY(sys::open(path, O_RDWR));
  loop_config config{};
  config.fd = static_cast<__u32>(image.get());
  config.info.lo_flags = LO_FLAGS_READ_ONLY | LO_FLAGS_AUTOCLEAR;
  if (::ioctl(loop.get(), LOOP_CONFIGURE, &config) != 0) {
    return failed(Step::image_mount, "cannot attach the image to " + path);
  }
  return Loop{path, std::move(loop)};
}

}  // namespace

Status private_mount_namespace() {
  if (::unshare(CLONE_NEWNS) != 0) {
    return failed(Step::zone_root, "cannot make a mount namespace");
  }
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return failed(Step::zone_root, "cannot make the mounts private");
  }
  return {};
}

Status mount_tmpfs(const std::string& target, const std::string& options) {
  if (::mount("tmpfs", target.c_str(), "tmpfs", MS_NOSUID, options.c_str()) != 0) {
    return failed(Step::zone_root, "cannot mount a tmpfs at " + target);
  }
  return {};
}

Status mount_image_file(const std::string& file, const std::string& target) {
  const Fd image = TRY(sys::open(file, O_RDONLY));
  auto direct = mount_erofs("/proc/self/fd/" + std::to_string(image.get()), target);
  if (direct || mount_image_by_loop(file, target)) return {};
  return direct;
}

Status mount_image_by_loop(const std::string& file, const std::string& target) {
  const Fd image = TRY(sys::open(file, O_RDONLY));
  const Loop loop = TRY(attach_loop(image));
  return mount_erofs(loop.path, target);
}

Status mount_image_directory(const std::string& directory, const std::string& target) {
  TRY(bind_mount(directory, target));
  if (restrict_mount(target, kImageAttributes)) return {};
  // What a mount of the host says about access times is locked for the root of a user namespace.
  return restrict_mount(target, kImageAttributes & ~std::uint64_t{MOUNT_ATTR_NOATIME});
}

Status bind_mount(const std::string& source, const std::string& target) {
  if (::mount(source.c_str(), target.c_str(), nullptr, MS_BIND, nullptr) != 0) {
    return failed(Step::zone_root, "cannot bind " + source + " to " + target);
  }
  return {};
}

Status restrict_mount(const std::string& target, std::uint64_t attributes) {
  mount_attr change{};
  change.attr_set = attributes;
  if ((attributes & MOUNT_ATTR_NOATIME) != 0) change.attr_clr = MOUNT_ATTR__ATIME;
  if (::syscall(SYS_mount_setattr, AT_FDCWD, target.c_str(), 0, &change, sizeof change) != 0) {
    return failed(Step::zone_root, "cannot restrict the mount at " + target);
  }
  return {};
}

Status make_device(const std::string& path, unsigned major, unsigned minor) {
  if (::mknod(path.c_str(), S_IFCHR | 0666, makedev(major, minor)) != 0 ||
      ::chmod(path.c_str(), 0666) != 0) {
    return failed(Step::zone_devices, "cannot make the device " + path);
  }
  return check_device(path, major, minor);
}

Status bind_device(const std::string& source, const std::string& path, unsigned major,
                   unsigned minor) {
  const Fd place = TRY(sys::open(path, O_WRONLY | O_CREAT | O_EXCL, 0666));
  TRY(bind_mount(source, path));
  // Without MOUNT_ATTR_NODEV: a device is what it is for. Writing to one asks for no permission of
  // the mount, so that it can be read-only and its node's mode and times cannot be changed.
  TRY(restrict_mount(path, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC));
  return check_device(path, major, minor);
}

Status check_device(const std::string& path, unsigned major, unsigned minor) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    return failed(Step::zone_devices, "cannot look at the device " + path);
  }
  if (!S_ISCHR(info.st_mode) || info.st_rdev != makedev(major, minor)) {
    return fail(ErrorCode::setup_failed, Step::zone_devices, path + " is another device");
  }
  return {};
}

}  // namespace hutch::isolation
