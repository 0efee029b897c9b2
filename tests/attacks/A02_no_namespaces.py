# No new namespace of any kind, by unshare, clone or clone3; clone3 says ENOSYS so that libc falls
# back.
FL = dict(
    NEWUSER=268435456,
    NEWNS=131072,
    NEWPID=536870912,
    NEWNET=1073741824,
    NEWIPC=134217728,
    NEWUTS=67108864,
    NEWCGROUP=33554432,
    NEWTIME=128,
)
for k, f in FL.items():
    for extra in (0, 268435456) if k != "NEWUSER" else (0,):
        if forked(lambda: 0 if sc(272, f | extra)[0] == -1 else 1) not in (0, -31):
            bad("unshare", k, hex(extra))

        def viaclone():
            r, e = sc(56, f | extra | 17, 0, 0, 0, 0)
            if r == 0:
                os._exit(0)
            if r > 0:
                os.waitpid(r, 0)
                return 1
            return 0

        if k != "NEWTIME" and forked(viaclone) not in (0, -31):
            bad("clone", k, hex(extra))


class A(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint64) for n in "flags pidfd ctid ptid sig stack ssz tls".split()]


def c3():
    a = A(flags=268435456, sig=17)
    r, e = sc(435, ctypes.byref(a), ctypes.sizeof(a))
    if r == 0:
        os._exit(0)
    if r > 0:
        os.waitpid(r, 0)
        return 1
    return 0 if e == "ENOSYS" else 2


c = forked(c3)
if c == 1:
    bad("clone3 NEWUSER allowed")
if c == 2:
    bad("clone3 must answer ENOSYS so that libc falls back to clone")
verdict()
