"""Turns a directory tree into the root of the namespaces that this runs in, and becomes its init.

    room_boot.py BASE PLACE IMAGES PACKAGES INIT...

BASE stays as it is: what the room writes goes to a tmpfs over it. PLACE is an empty directory to
mount that on. IMAGES and PACKAGES appear read-only below /mnt. Started by room.py with mount, pid,
uts, ipc, network and cgroup namespaces of its own.
"""

import ctypes
import fcntl
import os
import socket
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)
BIND, READ_ONLY, REMOUNT, REC, PRIVATE, DETACH = 4096, 1, 32, 16384, 1 << 18, 2
PIVOT_ROOT = 155  # x86-64


def mount(source, target, kind=None, flags=0, options=None):
    words = [None if word is None else word.encode() for word in (source, target, kind, options)]
    if libc.mount(words[0], words[1], words[2], flags, words[3]) != 0:
        error = ctypes.get_errno()
        sys.exit(f"cannot mount {source} at {target}: {os.strerror(error)}")


def bind(source, target):
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        open(target, "a").close()
    mount(source, target, flags=BIND)


def cgroup_mounts():
    """(place, type, options) of the machine's hierarchies, v1 and v2."""
    found = []
    for line in open("/proc/self/mountinfo"):
        left, right = line.rstrip("\n").split(" - ")
        kind, _, options = right.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            controllers = [word for word in options.split(",") if word not in ("rw", "ro")]
            found.append((left.split()[4], kind, ",".join(controllers)))
    return found


def mount_cgroups(root, hierarchies):
    if len(hierarchies) == 1:
        mount("cgroup", f"{root}{hierarchies[0][0]}", hierarchies[0][1])
        return
    mount("cgroup", f"{root}/sys/fs/cgroup", "tmpfs", options="mode=755")
    for place, kind, options in hierarchies:
        os.makedirs(root + place, exist_ok=True)
        if kind == "cgroup2":
            mount("cgroup", root + place, kind)
        elif options.startswith("name="):
            mount("cgroup", root + place, kind, options="none," + options)
        else:
            mount("cgroup", root + place, kind, options=options)


def make_devices(root):
    mount("dev", f"{root}/dev", "tmpfs", options="mode=755")
    names = ["null", "zero", "full", "random", "urandom", "tty", "loop-control"]
    names += [name for name in os.listdir("/dev") if name.startswith("loop") and name[4:].isdigit()]
    for name in names:
        if os.path.exists(f"/dev/{name}"):
            bind(f"/dev/{name}", f"{root}/dev/{name}")
    for name in ("pts", "shm"):
        os.mkdir(f"{root}/dev/{name}")
    mount("pts", f"{root}/dev/pts", "devpts", options="newinstance,ptmxmode=0666,mode=620,gid=5")
    mount("shm", f"{root}/dev/shm", "tmpfs", options="mode=1777")
    for name, target in (("ptmx", "pts/ptmx"), ("fd", "/proc/self/fd"), ("stdin", "fd/0"),
                         ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(target, f"{root}/dev/{name}")


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", 0x1 | 0x40)  # IFF_UP, IFF_RUNNING
        fcntl.ioctl(any_socket, 0x8914, request)  # SIOCSIFFLAGS


def main():
    base, place, images, packages, *init = sys.argv[1:]
    hierarchies = cgroup_mounts()
    mount(None, "/", flags=REC | PRIVATE)
    mount("room", place, "tmpfs")
    root = f"{place}/root"
    for name in ("upper", "scratch", "root"):
        os.mkdir(f"{place}/{name}")
    layers = f"lowerdir={base},upperdir={place}/upper,workdir={place}/scratch"
    mount("room", root, "overlay", options=layers)
    for source, name in ((images, "images"), (packages, "packages")):
        bind(source, f"{root}/mnt/{name}")
        mount(None, f"{root}/mnt/{name}", flags=BIND | REMOUNT | READ_ONLY)
    mount("proc", f"{root}/proc", "proc")
    mount("sys", f"{root}/sys", "sysfs")
    make_devices(root)
    mount("run", f"{root}/run", "tmpfs", options="mode=755")
    mount_cgroups(root, hierarchies)
    loopback_up()
    socket.sethostname("room")
    os.mkdir(f"{root}/old")
    os.chdir(root)
    if libc.syscall(PIVOT_ROOT, b".", b"old") != 0:
        sys.exit(f"cannot pivot: {os.strerror(ctypes.get_errno())}")
    os.chdir("/")
    if libc.umount2(b"/old", DETACH) != 0:
        sys.exit("cannot let the old root go")
    os.rmdir("/old")
    os.execve(init[0], init, {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "container": "room"})


main()
