# The other processes of the sandbox cannot be read, traced or written.
me = os.getpid()
others = [int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) != me]
print("pid", me, "ppid", os.getppid(), "others", others)
if len(others) > 12:
    bad("sees", len(others), "other processes")
for p in set(others + [1, os.getppid()]):
    if p in (me, 0):
        continue
    for f, flags in (
        ("mem", os.O_RDWR),
        ("mem", os.O_RDONLY),
        ("environ", os.O_RDONLY),
        ("maps", os.O_RDONLY),
        ("auxv", os.O_RDONLY),
    ):
        try:
            fd = os.open(f"/proc/{p}/{f}", flags)
        except OSError:
            continue
        try:
            d = os.read(fd, 64) if f != "mem" else b"opened"
        except OSError:
            d = b""
        os.close(fd)
        if d:
            bad(f"/proc/{p}/{f}", "mode", flags, d[:40])
    for d in ("fd", "map_files", "task"):
        try:
            names = os.listdir(f"/proc/{p}/{d}")
            if d == "fd" and names:
                bad(f"/proc/{p}/fd listed", names[:8])
                for n in names:
                    try:
                        os.close(os.open(f"/proc/{p}/fd/{n}", os.O_RDWR | os.O_NONBLOCK))
                        bad("reopened fd", n, "of", p)
                    except OSError:
                        pass
        except OSError:
            pass
    for ln in ("root", "cwd", "exe"):
        try:
            bad(f"/proc/{p}/{ln}", "->", os.readlink(f"/proc/{p}/{ln}"))
        except OSError:
            pass

    def att():
        r, e = sc(101, 16, p, 0, 0)
        if r == 0:
            os.waitpid(p, 1073741824)
            sc(101, 17, p, 0, 0)
            return 1
        return 0

    if forked(att) == 1:
        bad("ptrace attached to", p)
    if sc(434, p, 0)[0] >= 0 and sc(438, sc(434, p, 0)[0], 0, 0)[0] >= 0:
        bad("pidfd_getfd from", p)
verdict()
