# Stands in front of every attack that runs inside a sandbox.
import ctypes, errno, os, signal, sys, time

_L = ctypes.CDLL(None, use_errno=True)
_L.syscall.restype = ctypes.c_long


def sc(nr, *a):
    ctypes.set_errno(0)
    r = _L.syscall(ctypes.c_long(nr), *[ctypes.c_long(x) if isinstance(x, int) else x for x in a])
    return (
        (r, "ok")
        if r != -1
        else (-1, errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno())))
    )


def forked(fn):
    p = os.fork()
    if p == 0:
        try:
            rc = fn()
        except BaseException:
            rc = 99
        os._exit(int(rc or 0))
    return os.waitstatus_to_exitcode(os.waitpid(p, 0)[1])


BAD = []


def bad(*w):
    BAD.append(" ".join(map(str, w)))


def verdict():
    for b in BAD[:60]:
        print("  BREACH:", b)
    print("VERDICT", "BREACH" if BAD else "SAFE", flush=True)


DENIED = ("EPERM", "ENOSYS", "EACCES")


def guard():
    if len([p for p in os.listdir("/proc") if p.isdigit()]) > 40:
        print(
            "  BREACH: sees a host-like process list; attack not started\nVERDICT BREACH",
            flush=True,
        )
        os._exit(98)
