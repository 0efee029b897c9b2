# The mount table: nothing writable but scratch, no kernel file system, no propagation to the host.
allowed_rw = {
    "/tmp",
    "/var/tmp",
    "/dev/shm",
    "/run",
    "/proc",
    "/dev",
    os.path.realpath("."),
    os.path.expanduser("~"),
    "/mnt/data",
    "/work",
    "/workspace",
}
bad_fs = {
    "cgroup",
    "cgroup2",
    "debugfs",
    "tracefs",
    "securityfs",
    "bpf",
    "configfs",
    "pstore",
    "efivarfs",
    "hugetlbfs",
    "binfmt_misc",
    "fuse",
    "fusectl",
    "nfs",
    "nfs4",
    "9p",
    "virtiofs",
    "devtmpfs",
    "rpc_pipefs",
    "nsfs",
}
for l in open("/proc/self/mountinfo"):
    pre, post = l.rstrip("\n").split(" - ", 1)
    f = pre.split(" ")
    opts, opt_fields = (f[5].split(","), f[6:])
    mp, fs = (f[4].replace("\\040", " "), post.split(" ")[0])
    if any((o.startswith(("shared:", "master:", "propagate_from:")) for o in opt_fields)):
        bad("propagation", mp, opt_fields)
    if fs in bad_fs:
        bad("filesystem", fs, "at", mp)
    if "rw" in opts:
        if mp not in allowed_rw:
            bad("writable mount", mp, fs)
        for need in ("nosuid", "nodev"):
            if need not in opts and mp not in ("/dev",):
                bad("writable without", need, mp)
    if mp == "/" and "rw" in opts:
        bad("root is writable")
verdict()
