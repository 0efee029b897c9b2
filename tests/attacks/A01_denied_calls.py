# Calls that no program needs are refused before kernel code runs: the null arguments would give
# EFAULT or EINVAL from the kernel itself.
N = dict(
    io_uring_setup=425,
    io_uring_enter=426,
    io_uring_register=427,
    bpf=321,
    userfaultfd=323,
    perf_event_open=298,
    add_key=248,
    request_key=249,
    keyctl=250,
    mount=165,
    umount2=166,
    pivot_root=155,
    chroot=161,
    setns=308,
    init_module=175,
    finit_module=313,
    delete_module=176,
    kexec_load=246,
    kexec_file_load=320,
    open_by_handle_at=304,
    fsopen=430,
    fsconfig=431,
    fsmount=432,
    fspick=433,
    open_tree=428,
    move_mount=429,
    mount_setattr=442,
    pidfd_getfd=438,
    process_vm_readv=310,
    process_vm_writev=311,
    process_madvise=440,
    kcmp=312,
    ptrace=101,
    swapon=167,
    swapoff=168,
    reboot=169,
    acct=163,
    quotactl=179,
    syslog=103,
    iopl=172,
    ioperm=173,
    fanotify_init=300,
    settimeofday=164,
    clock_settime=227,
    sethostname=170,
    setdomainname=171,
    vhangup=153,
    modify_ldt=154,
    uselib=134,
    move_pages=279,
    migrate_pages=256,
    mbind=237,
    set_mempolicy=238,
)
for name, nr in N.items():

    def t(nr=nr):
        r, e = sc(nr, 0, 4096 if nr in (170, 171) else 0, 0, 0, 0, 0)
        return 0 if r == -1 and e in DENIED else 1

    c = forked(t)
    if c not in (0, -31):
        bad(name, "reached the kernel, code", c)
if forked(lambda: 0 if sc(135, 262144)[1] in DENIED else 1) not in (0, -31):
    bad("personality(ADDR_NO_RANDOMIZE) allowed")
verdict()
