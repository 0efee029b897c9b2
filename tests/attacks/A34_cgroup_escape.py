# The control groups are neither visible beyond its own root, nor writable, nor mountable.
import subprocess

for l in open("/proc/self/cgroup"):
    p = l.strip().split(":", 2)[2]
    if p not in ("/", ""):
        bad("cgroup path not namespaced", l.strip())
for root in ("/sys/fs/cgroup",):
    for d, ds, fs in os.walk(root):
        for f in fs:
            try:
                fd = os.open(os.path.join(d, f), os.O_WRONLY)
                os.close(fd)
                bad("cgroup file writable", d, f)
            except OSError:
                pass
        if d.count("/") > 6:
            ds[:] = []
for t, o in (
    ("cgroup", "memory"),
    ("cgroup", "rdma"),
    ("cgroup2", ""),
    ("cgroup", "none,name=a34"),
):
    os.makedirs("cg", exist_ok=True)
    r, e = sc(
        165,
        ctypes.c_char_p(b"none"),
        ctypes.c_char_p(b"cg"),
        ctypes.c_char_p(t.encode()),
        0,
        ctypes.c_char_p(o.encode()),
    )
    if r == 0:
        bad("mounted", t, o)
verdict()
