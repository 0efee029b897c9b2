# Setuid files and file capabilities give nothing, wherever they lie.
import stat

seen = 0
for root, ds, fs in os.walk("/", followlinks=False):
    ds[:] = [d for d in ds if os.path.join(root, d) not in ("/proc", "/sys")]
    for f in fs:
        p = os.path.join(root, f)
        try:
            s = os.lstat(p)
        except OSError:
            continue
        if stat.S_ISREG(s.st_mode) and s.st_mode & 0o6000:
            seen += 1
            if not os.statvfs(p).f_flag & os.ST_NOSUID:
                bad("setuid/setgid on a mount without nosuid", p)
for d in (".", "/tmp", "/dev/shm", "/var/tmp"):
    try:
        v = os.statvfs(d)
    except OSError:
        continue
    if not v.f_flag & os.ST_RDONLY and (not v.f_flag & os.ST_NOSUID):
        bad("writable without nosuid", d)
    if not v.f_flag & os.ST_RDONLY and (not v.f_flag & os.ST_NODEV):
        bad("writable without nodev", d)
try:
    open("su_x", "wb").write(b"#!/bin/sh\nid -u\n")
    os.chmod("su_x", 0o6755)
except OSError as e:
    print("chmod 6755:", e)
try:
    os.setxattr("su_x", "security.capability", b"\x01\x00\x00\x02" + b"\xff" * 16)
    bad("file capability set")
except OSError:
    pass
print("setuid files in image:", seen)
verdict()
