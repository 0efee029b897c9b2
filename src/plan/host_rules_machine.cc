#include "plan/host_rules.h"

namespace hutch::plan {
namespace {

// The newest call that a sandbox is made with: mount_setattr, which makes a whole tree read-only.
constexpr unsigned kKernelMajorMin = 5;
constexpr unsigned kKernelMinorMin = 12;

}  // namespace

Finding judge_kernel(const HostFacts& facts) {
  constexpr std::string_view kName = "kernel";
  const std::string release = facts.kernel_release.empty() ? "unknown" : facts.kernel_release;
  if (facts.gvisor) {
    return failed(kName,
                  "The kernel here is gVisor's (" + release +
                      "), which has no mount_setattr, no pidfds and no control groups.",
                  "docker run --runtime=runc ...");
  }
  if (facts.wsl == 1) {
    return failed(kName, "Windows plays the kernel here (WSL 1), without namespaces.",
                  "wsl.exe --set-version \"$WSL_DISTRO_NAME\" 2");
  }
  const bool enough =
      facts.kernel_major > kKernelMajorMin ||
      (facts.kernel_major == kKernelMajorMin && facts.kernel_minor >= kKernelMinorMin);
  if (enough) return pass(kName, "Linux " + release + " has every call that is used.");
  return failed(kName, "Linux " + release + " is older than 5.12 (Debian 12 has 6.1).",
                as_root(facts, "apt-get install linux-image-amd64 && reboot"));
}

Finding judge_machine(const HostFacts& facts) {
  constexpr std::string_view kName = "machine";
  if (facts.machine.empty()) return skipped(kName, "The kernel does not say what machine it is.");
  if (facts.machine == "x86_64" || facts.machine == "aarch64") {
    return pass(kName, facts.machine + ": its system calls are known, all others are refused.");
  }
  return failed(kName,
                "The kernel runs on " + facts.machine +
                    ", and there is no table of its system calls: nothing could be filtered.",
                "Install a 64-bit system on x86_64 or aarch64.");
}

Finding judge_container(const HostFacts& facts) {
  constexpr std::string_view kName = "container";
  if (facts.container.empty() && facts.wsl == 0) return pass(kName, "Not inside a container.");
  if (facts.container.empty()) {
    return caution(
        kName, "Inside WSL 2: files of Windows are in reach of whoever breaks out of a sandbox.",
        "printf '[automount]\\nenabled=false\\n' | " + as_root(facts, "tee -a /etc/wsl.conf"));
  }
  const std::string about = "Inside a container (" + facts.container +
                            "): its limits bound all sandboxes together, and what it forbids is "
                            "missing below";
  if (facts.container == "docker" || facts.container == "podman") {
    return caution(
        kName, about + ".",
        facts.container + " run --privileged --cgroupns=host -v /sys/fs/cgroup:/sys/fs/cgroup ...");
  }
  if (facts.container == "lxc") {
    return caution(kName, about + ".", "lxc config set NAME security.nesting=true");
  }
  return caution(kName, about + ".", "Run on the host itself where a line below fails.");
}

Finding judge_proc(const HostFacts& facts) {
  constexpr std::string_view kName = "proc";
  std::string what;
  if (facts.proc_readonly) what = "/proc is mounted read-only";
  if (!facts.proc_masks.empty()) {
    what = "Parts of /proc are covered (" + facts.proc_masks.front() +
           (facts.proc_masks.size() > 1 ? " and others" : "") + ")";
  }
  if (what.empty()) return pass(kName, "/proc is fully visible.");
  std::string remedy = "docker run --security-opt systempaths=unconfined ...";
  if (facts.container == "podman") remedy = "podman run --security-opt unmask=ALL ...";
  if (facts.container.empty()) {
    remedy = as_root(facts, facts.proc_masks.empty() ? "mount -o remount,rw /proc"
                                                     : "umount " + facts.proc_masks.front());
  }
  return failed(kName, what + ", so the kernel refuses a fresh /proc to sandboxes.",
                std::move(remedy));
}

Finding judge_seccomp(const HostFacts& facts) {
  constexpr std::string_view kName = "seccomp";
  if (facts.seccomp && facts.user.is_filtered) {
    return pass(kName, "System calls can be filtered; those of this process are already.");
  }
  if (facts.seccomp) return pass(kName, "System calls can be filtered.");
  return failed(kName, "The kernel cannot filter system calls (no CONFIG_SECCOMP_FILTER).",
                as_root(facts, "apt-get install linux-image-amd64 && reboot"));
}

Finding judge_keyrings(const HostFacts& facts) {
  constexpr std::string_view kName = "keyrings";
  if (facts.keyrings) return pass(kName, "Each program gets an empty keyring of its own.");
  if (!facts.container.empty()) {
    return failed(kName, "The container forbids keyctl, which takes the host's keys away.",
                  "docker run --security-opt seccomp=unconfined ...");
  }
  return failed(kName, "The kernel has no keyrings (no CONFIG_KEYS).",
                as_root(facts, "apt-get install linux-image-amd64 && reboot"));
}

Finding judge_images(const HostFacts& facts) {
  constexpr std::string_view kName = "images";
  if (facts.images_directory.empty()) return skipped(kName, "No state directory was asked about.");
  if (!facts.images_noexec) {
    return pass(kName, "Programs can be started from " + facts.images_directory + ".");
  }
  if (!is_rootless(facts) && facts.erofs) {
    return pass(kName, "An image that is one file is mounted anew, with programs that start.");
  }
  return failed(kName,
                facts.images_directory +
                    " lies on a file system that is mounted noexec: no program of an image starts.",
                is_rootless(facts) ? "hutch serve --state-dir DIR ..., on another file system"
                                   : "mount -o remount,exec " + facts.images_directory);
}

Finding judge_erofs(const HostFacts& facts) {
  constexpr std::string_view kName = "erofs";
  if (is_rootless(facts)) {
    return skipped(kName, "Without root no image file can be mounted; images are directories.");
  }
  if (facts.erofs) return pass(kName, "Images can be mounted as one read-only file.");
  return caution(kName, "The kernel has no erofs: images are used as plain directories.",
                 as_root(facts, "modprobe erofs"));
}

Finding judge_image_tools(const HostFacts& facts) {
  constexpr std::string_view kName = "image_tools";
  const std::string remedy = as_root(facts, "apt-get install erofs-utils");
  if (is_rootless(facts)) {
    if (!facts.fsck_erofs.path.empty()) {
      return pass(kName, facts.fsck_erofs.path + " can unpack an image file into a directory.");
    }
    return caution(kName,
                   "There is no fsck.erofs, so an image that comes as a file cannot be unpacked.",
                   remedy);
  }
  if (!facts.erofs) return skipped(kName, "Without erofs there is nothing to pack images with.");
  if (!facts.mkfs_erofs.path.empty()) {
    return pass(kName, facts.mkfs_erofs.path + " packs an image that is built here.");
  }
  return caution(kName, "There is no mkfs.erofs: images that are built here stay directories.",
                 remedy);
}

Finding judge_landlock(const HostFacts& facts) {
  constexpr std::string_view kName = "landlock";
  if (facts.landlock == 0) return skipped(kName, "No Landlock; nothing here depends on it.");
  return pass(kName, "Programs can shut themselves in with Landlock, ABI " +
                         std::to_string(facts.landlock) + ".");
}

Finding judge_selinux(const HostFacts& facts) {
  constexpr std::string_view kName = "selinux";
  if (!facts.selinux_enforcing) return pass(kName, "SELinux does not enforce a policy here.");
  return caution(kName,
                 "SELinux enforces a policy, which may refuse mounts or namespaces; what it "
                 "refused is listed by the command.",
                 as_root(facts, "ausearch -m avc -ts recent"));
}

// RLIMIT_CORE 0 keeps files from being written, but the kernel starts a handler all the same.
Finding judge_core_dumps(const HostFacts& facts) {
  constexpr std::string_view kName = "core_dumps";
  if (facts.core_handler.empty()) return pass(kName, "A crash in a sandbox leaves nothing.");
  return caution(kName,
                 "kernel.core_pattern starts " + facts.core_handler +
                     " as root, outside, for each crash in a sandbox, and hands it the memory.",
                 as_root(facts, "sysctl -w kernel.core_pattern=core"));
}

Finding judge_devices(const HostFacts& facts) {
  constexpr std::string_view kName = "devices";
  if (!is_rootless(facts)) return skipped(kName, "Root makes the devices of a sandbox itself.");
  if (facts.devices_missing.empty()) {
    return pass(kName, "The five devices of a sandbox can be lent from /dev.");
  }
  const std::string& first = facts.devices_missing.front();
  std::string minor = "3";
  if (first == "/dev/zero") minor = "5";
  if (first == "/dev/full") minor = "7";
  if (first == "/dev/random") minor = "8";
  if (first == "/dev/urandom") minor = "9";
  return failed(kName,
                enumerate(facts.devices_missing) +
                    " is missing, or no such device, and only root could make it.",
                "sudo mknod -m 666 " + first + " c 1 " + minor);
}

Finding judge_run_directory(const HostFacts& facts) {
  constexpr std::string_view kName = "run_directory";
  if (facts.run_directory.empty()) {
    return skipped(kName, "It is made with the user namespace.");
  }
  if (facts.run_directory_fault.empty()) {
    return pass(kName, "Mounts are prepared in " + facts.run_directory + ".");
  }
  return failed(
      kName,
      "Mounts are prepared in " + facts.run_directory + ", which " + facts.run_directory_fault +
          ".",
      as_root(facts, facts.run_directory_fault == kNoDirectory ? "rm " + facts.run_directory
                                                               : "mount -o remount,rw /run"));
}

}  // namespace hutch::plan
