# The device directory, making devices, and terminals.
import fcntl, stat, termios

ok = {
    "null",
    "zero",
    "full",
    "random",
    "urandom",
    "fd",
    "stdin",
    "stdout",
    "stderr",
    "shm",
    "pts",
    "ptmx",
    "tty",
    "mqueue",
    "core",
}
for n in os.listdir("/dev"):
    if n not in ok:
        bad("/dev/" + n)
for n in (
    "kvm",
    "fuse",
    "mem",
    "kmsg",
    "port",
    "vsock",
    "vhost-net",
    "net/tun",
    "loop-control",
    "dm-0",
    "sda",
    "vda",
    "uinput",
    "hpet",
    "snapshot",
    "userfaultfd",
    "rtc0",
    "nvidia0",
):
    try:
        os.close(os.open("/dev/" + n, os.O_RDONLY))
        bad("opened /dev/" + n)
    except OSError:
        pass
for kind, mj, mn in (
    (stat.S_IFCHR, 1, 1),
    (stat.S_IFCHR, 1, 3),
    (stat.S_IFCHR, 5, 1),
    (stat.S_IFBLK, 254, 0),
    (stat.S_IFBLK, 8, 0),
):
    for d in (".", "/tmp", "/dev/shm"):
        p = os.path.join(d, f"n{mj}_{mn}")
        try:
            os.mknod(p, kind | 0o666, os.makedev(mj, mn))
        except OSError:
            continue
        try:
            os.close(os.open(p, os.O_RDWR))
            bad("made and opened device", mj, mn, d)
        except OSError:
            pass
for fd in (0, 1, 2):
    if os.isatty(fd):
        bad("stdio is a terminal", fd)
    try:
        fcntl.ioctl(fd, termios.TIOCSTI, b"x")
        bad("TIOCSTI", fd)
    except OSError:
        pass
try:
    os.close(os.open("/dev/tty", os.O_RDWR))
    bad("controlling terminal")
except OSError:
    pass
verdict()
