# Only Unix and inet stream and datagram sockets can be made: every other family is a kernel
# subsystem.
import socket

for f in range(0, 64):
    for t in (1, 2, 3, 4, 5):
        for extra in (0, socket.SOCK_CLOEXEC):
            if f == 16:
                continue
            try:
                s = socket.socket(f, t | extra, 0)
            except OSError:
                continue
            s.close()
            if f not in (1, 2, 10):
                bad("socket family", f, "type", t, "opened")
            elif f in (2, 10) and t not in (1, 2):
                bad("inet socket type", t, "opened (raw/packet)")
for p in range(1, 32):
    for t in (2, 3):
        try:
            s = socket.socket(16, t, p)
            s.close()
            bad("netlink protocol", p, "opened")
        except OSError:
            pass
for p in (1, 2, 58, 132, 255, 262):
    for f, t in ((2, 1), (2, 2), (2, 3), (2, 5), (10, 2), (10, 3)):
        try:
            s = socket.socket(f, t, p)
            s.close()
            bad("inet proto", p, "type", t)
        except OSError:
            pass
try:
    a, b = socket.socketpair(16, 2, 0)
    bad("netlink socketpair")
except OSError:
    pass
verdict()
