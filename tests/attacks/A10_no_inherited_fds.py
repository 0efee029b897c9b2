# No descriptor but the three standard ones, and none of them a file or a socket.
import subprocess


def scan(tag, code=None):
    for fd in range(3, 4096):
        try:
            st = os.fstat(fd)
        except OSError:
            continue
        try:
            l = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            l = oct(st.st_mode)
        bad(tag, "fd", fd, l)


scan("python")
out = subprocess.run(
    ["/bin/sh", "-c", 'for f in /proc/self/fd/*; do echo "$f $(readlink $f)"; done'],
    capture_output=True,
    text=True,
    close_fds=False,
).stdout
for l in out.splitlines():
    n = l.split()[0].rsplit("/", 1)[1]
    if n.isdigit() and int(n) > 2 and ("/proc/" not in l):
        bad("shell", l)
for fd in (0, 1, 2):
    l = os.readlink(f"/proc/self/fd/{fd}")
    if l.startswith("/") and l not in ("/dev/null",):
        bad("stdio is a file", fd, l)
    if l.startswith("socket:"):
        bad("stdio is a socket: can be used for sendmsg/SCM_RIGHTS toward the supervisor", fd)
verdict()
