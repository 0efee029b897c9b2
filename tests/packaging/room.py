"""A fresh Debian 12 of the test's own, with an init of its own: systemd or none.

The base is made once by mmdebstrap and kept below build/. A room is an overlay over it in mount,
pid, uts, ipc, network and cgroup namespaces of its own: it has no network but its loopback, and
when its init ends nothing of it is left.
"""

import contextlib
import hashlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from harness import settings

HERE = pathlib.Path(__file__).parent
TREE = HERE.parents[1]
SUITE = "bookworm"
RECIPE = "1"  # raised when make_base() makes something else
# Units that would set up the machine, and this one belongs to somebody else.
MASKED = ["systemd-sysctl", "systemd-modules-load", "systemd-remount-fs", "systemd-logind",
          "systemd-tmpfiles-setup-dev", "systemd-udevd"]


def dependencies(package):
    """The names of the packages that a .deb asks for."""
    text = subprocess.run(
        ["dpkg-deb", "-f", str(package), "Depends"], check=True, capture_output=True, text=True
    ).stdout
    return sorted(word.split()[0] for word in text.split(","))


def _mirrors():
    """Where apt on this machine gets Debian 12 from."""
    shown = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(RELEASE)|$(COMPONENT)|$(REPO_URI)",
         "Created-By: Packages", "Target-Of: deb"],
        check=True, capture_output=True, text=True,
    ).stdout
    lines = []
    for line in shown.splitlines():
        suite, component, uri = line.split("|")
        if suite.startswith(SUITE) and component == "main" and "debian" in uri:
            lines.append(f"deb {uri} {suite} main")
    assert lines, "apt on this machine names no mirror of Debian 12"
    return sorted(set(lines))


def _apt_options():
    dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True).stdout
    proxies = [line for line in dump.splitlines() if "::Proxy " in line and "Acquire" in line]
    return proxies + ['Acquire::Languages "none";', 'Acquire::Check-Valid-Until "false";',
                      'Acquire::Check-Date "false";', 'Acquire::Retries "3";']


def make_base(wanted):
    """The path of a Debian 12 with systemd, and with the packages `wanted` downloaded for apt."""
    key = hashlib.sha256(" ".join([RECIPE, *MASKED, *wanted]).encode()).hexdigest()
    base = TREE / "build" / "test-rooms" / f"{SUITE}-{key[:12]}"
    if base.exists():
        return base
    shutil.rmtree(base.parent, ignore_errors=True)
    base.parent.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:
        sources = pathlib.Path(scratch, "sources.list")
        sources.write_text("\n".join(_mirrors()) + "\n")
        options = pathlib.Path(scratch, "apt.conf")
        options.write_text("\n".join(_apt_options()) + "\n")
        unfinished = base.with_name("unfinished")
        download = "apt-get install -y --download-only --no-install-recommends " + " ".join(wanted)
        done = subprocess.run(
            ["mmdebstrap", "--mode=root", "--variant=minbase", "--format=directory",
             f"--aptopt={options}", "--dpkgopt=force-unsafe-io", "--skip=cleanup/apt",
             "--include=systemd,systemd-sysv,dbus", f'--customize-hook=chroot "$1" {download}',
             SUITE, str(unfinished), str(sources)],
            capture_output=True, text=True, timeout=540,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        units = unfinished / "etc/systemd/system"
        for name in MASKED:
            (units / f"{name}.service").symlink_to("/dev/null")
        unfinished.rename(base)
    return base


def _own_groups():
    """(hierarchy, directory) of this process's control groups, v1 and v2."""
    own = {}
    for line in open("/proc/self/cgroup"):
        _, names, path = line.rstrip("\n").split(":", 2)
        own[names] = path
    groups = []
    for line in open("/proc/self/mountinfo"):
        left, right = line.rstrip("\n").split(" - ")
        kind, _, options = right.split(" ", 2)
        point = left.split()[4]
        for names, path in own.items():
            here = set(names.split(",")) <= set(options.split(","))
            fits = kind == "cgroup2" if not names else kind == "cgroup" and here
            if fits and "/.." not in path:
                groups.append((names, pathlib.Path(point + path.rstrip("/"))))
    return groups


class Room:
    """`with Room(base, packages_directory, "systemd") as room: room.run("hutch version")`."""

    def __init__(self, base, packages, init):
        self.base, self.packages, self.init = base, packages, init
        self.images = pathlib.Path(settings.IMAGE_STATE, "images")
        self.name = f"hutch-room-{os.getpid()}"

    def __enter__(self):
        self.place = tempfile.mkdtemp(prefix="hutch-room-")
        self.log = open(f"{self.place}.log", "w+b")
        self.groups = []
        for names, own in _own_groups():
            group = own / self.name
            group.mkdir()
            if names == "cpuset":
                for knob in ("cpuset.cpus", "cpuset.mems"):
                    (group / knob).write_text((own / knob).read_text())
            self.groups.append(group)
        init = {
            "systemd": ["/lib/systemd/systemd", "--log-target=console", "--show-status=0"],
            "none": ["/bin/bash", "-c", "sleep infinity & wait"],
        }[self.init]
        namespaces = ["--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup"]
        boot = [sys.executable, str(HERE / "room_boot.py"), str(self.base), self.place]
        self.outer = subprocess.Popen(
            [*self._in_group(), "setsid", "unshare", *namespaces, "--fork", "--kill-child", "--",
             *boot, str(self.images), str(self.packages), *init],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
        )
        try:
            self._await_init()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _in_group(self):
        """The words that put a command into the room's control groups. systemd takes away every
        group below its own that it does not know, so a command goes to where init is."""
        enter = ""
        for group in self.groups:
            enter += f"g={group}; [ ! -d $g/init.scope ] || g=$g/init.scope; "
            enter += "echo $$ >$g/cgroup.procs && "
        return ["sh", "-c", enter + 'exec "$@"', "sh"]

    def _await_init(self):
        children = pathlib.Path(f"/proc/{self.outer.pid}/task/{self.outer.pid}/children")
        for _ in range(200):
            assert self.outer.poll() is None, self.log_text()
            with contextlib.suppress(OSError, IndexError):
                self.pid = int(children.read_text().split()[0])
                # The name of pid 1 changes when the last step of room_boot.py is done.
                name = pathlib.Path(f"/proc/{self.pid}/comm").read_text().strip()
                if name in ("bash", "systemd"):
                    break
            time.sleep(0.1)
        else:
            raise AssertionError(self.log_text())
        if self.init == "systemd":
            for _ in range(100):  # the bus is not there from the beginning
                state = self.run("systemctl is-system-running --wait", check=False)
                if state.stdout.strip() in ("running", "degraded"):
                    break
                time.sleep(0.2)
            assert state.stdout.strip() == "running", f"{state}\n{self.log_text()}"

    def words(self, *command):
        clean = ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                 "DEBIAN_FRONTEND=noninteractive"]
        return [*self._in_group(), "nsenter", "-t", str(self.pid), "-a", "--", *clean, *command]

    def run(self, command, check=True, timeout=60):
        done = subprocess.run(
            self.words("sh", "-c", command), stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=timeout,
        )
        if check:
            assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done

    def start(self, *command):
        return subprocess.Popen(self.words(*command), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=self.log)

    def http(self, path, body=None):
        """The answer on the room's own loopback; curl is the host's."""
        words = ["nsenter", "-t", str(self.pid), "-n", "curl", "-sS", "--max-time", "60",
                 f"http://127.0.0.1:8700{path}"]
        words += ["-d", body] if body else []
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def files(self):
        """What lies in the room's root, without what its kernel shows there."""
        listed = self.run("find / -xdev -printf '%p %y %m %u\\n'").stdout
        return set(listed.splitlines())

    def log_text(self):
        self.log.flush()
        return pathlib.Path(self.log.name).read_text(errors="replace")[-4000:]

    def __exit__(self, *_):
        if self.outer.poll() is None:
            if self.init == "systemd" and getattr(self, "pid", 0):
                # Units end in order, and their control groups with them.
                with contextlib.suppress(OSError):
                    os.kill(self.pid, signal.SIGRTMIN + 4)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.outer.wait(20)
            self.outer.kill()
        self.outer.wait()
        for group in self.groups:
            self._remove(group)
        self.log.close()
        os.unlink(self.log.name)
        os.rmdir(self.place)

    @staticmethod
    def _remove(group):
        for _ in range(100):
            try:
                for directory, _, _ in os.walk(group, topdown=False):
                    os.rmdir(directory)
                return
            except OSError:
                time.sleep(0.05)
        raise AssertionError(f"processes are left in {group}")
