"""Attacks plan/plan.cc (rlimits, mounts of /proc) and filter_policy.cc: every scheduling class,
limit and file of /proc by which a process may better its own place or touch pid 1."""

import resource

MASK = (ctypes.c_ulong * 2)()
for name, call in (
    ("SCHED_FIFO", (144, 0, 1, ctypes.byref(ctypes.c_int(1)))),
    ("SCHED_RR", (144, 0, 2, ctypes.byref(ctypes.c_int(1)))),
    ("real-time i/o", (251, 1, 0, 1 << 13)),
    ("nice -1", (141, 0, 0, -1)),
    ("limits of init", (302, 1, 7, 0, ctypes.byref(MASK))),
    ("a key", (248, b"user", b"x", b"y", 1, -3)),
    ("a keyring", (250, 1, 0)),
    ("signal to init", (62, 1, 0)),
):
    if sc(*call)[0] >= 0:
        bad(name)
init = sc(434, 1, 0)[0]  # anybody may hold a pidfd; what is done with it is judged
for name, call in (
    ("signals init by its pidfd", (424, init, 0, 0, 0)),
    ("waits for init", (247, 3, init, 0, 4 | 1, 0)),
    ("takes a descriptor of init", (438, init, 3, 0)),
    ("enters init's namespaces", (308, init, 0x7C020000)),
    *((f"namespace {n} of init", (16, init, 0xFF00 | n, 0)) for n in range(1, 11)),
):
    if sc(*call)[0] >= 0:
        bad(name)
for name in ("NOFILE", "MEMLOCK", "MSGQUEUE", "SIGPENDING", "CORE", "NICE", "RTPRIO", "STACK"):
    kind = getattr(resource, "RLIMIT_" + name)
    hard = resource.getrlimit(kind)[1]
    for more in (hard + 1, resource.RLIM_INFINITY):
        try:
            resource.setrlimit(kind, (more, more))
            bad("raises", name)
        except (ValueError, OSError):
            pass
for path in (
    "/proc/1/oom_score_adj",
    "/proc/self/uid_map",
    "/proc/self/gid_map",
    "/proc/self/setgroups",
    "/proc/self/timens_offsets",
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/ns_last_pid",
    "/proc/sys/kernel/pid_max",
    "/proc/sys/kernel/msgmnb",
    "/proc/sys/user/max_user_namespaces",
    "/proc/sys/user/max_inotify_instances",
    "/proc/sys/net/ipv4/ip_unprivileged_port_start",
    "/proc/sysrq-trigger",
):
    try:
        descriptor = os.open(path, os.O_WRONLY)
        os.write(descriptor, b"1")
        bad("writes", path)
    except OSError:
        pass
verdict()
