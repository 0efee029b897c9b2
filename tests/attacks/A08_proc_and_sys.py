# Kernel settings cannot be written, and what tells about the host is masked.
W = """
/proc/sysrq-trigger /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname
/proc/sys/kernel/modprobe /proc/sys/kernel/ns_last_pid /proc/sys/vm/drop_caches
/proc/sys/vm/overcommit_memory /proc/sys/fs/binfmt_misc/register /proc/sys/net/ipv4/ip_forward
/proc/sys/user/max_user_namespaces /proc/irq/default_smp_affinity /proc/mtrr /proc/acpi/wakeup
/proc/scsi/scsi /sys/kernel/uevent_helper /sys/kernel/mm/transparent_hugepage/enabled
/sys/power/state /sys/module/apparmor/parameters/enabled /sys/kernel/profiling
/sys/fs/cgroup/release_agent /sys/fs/cgroup/memory/release_agent /sys/fs/cgroup/cgroup.procs
""".split()
for p in W:
    try:
        fd = os.open(p, os.O_WRONLY)
    except OSError:
        continue
    os.close(fd)
    bad("opened for writing", p)
try:
    fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
    os.write(fd, b"-1000")
    bad("made itself immune to the OOM killer")
except OSError:
    pass
Rd = """
/proc/kcore /proc/keys /proc/key-users /proc/timer_list /proc/sched_debug /proc/latency_stats
/proc/kmsg /proc/kpagemap /proc/kpageflags /proc/vmallocinfo /proc/slabinfo /proc/interrupts
/proc/acpi /proc/asound /proc/scsi /proc/1/environ /proc/1/mem /proc/1/maps /proc/1/root/etc
/proc/config.gz /proc/iomem /sys/firmware /sys/devices/virtual/powercap /sys/kernel/debug
/sys/kernel/tracing /sys/kernel/security /sys/class/dmi/id/product_uuid
""".split()
for p in Rd:
    try:
        d = os.listdir(p) if os.path.isdir(p) else open(p, "rb").read(256)
    except (OSError, ValueError):
        continue
    if p.startswith("/proc/1/") and os.getpid() == 1:
        continue
    if p == "/proc/iomem" and b"00000000-00000000" in bytes(d or b""):
        continue
    if d:
        bad("readable", p, str(d[:3]))
try:
    ks = [l.split()[0] for l in open("/proc/kallsyms")][:200]
    if any((int(a, 16) for a in ks)):
        bad("kallsyms shows kernel addresses")
except OSError:
    pass
verdict()
