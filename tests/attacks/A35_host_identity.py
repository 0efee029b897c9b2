# Prints everything that could name the host; the test compares it with the host.
import json

g = lambda p: (
    open(p, errors="replace").read()[:4000] if os.path.exists(p) and os.access(p, os.R_OK) else None
)
print(
    json.dumps(
        {
            "hostname": os.uname().nodename,
            "machine_id": g("/etc/machine-id"),
            "etc_hostname": g("/etc/hostname"),
            "hosts": g("/etc/hosts"),
            "passwd": g("/etc/passwd"),
            "resolv": g("/etc/resolv.conf"),
            "cmdline": g("/proc/cmdline"),
            "mounts": g("/proc/self/mounts"),
            "partitions": g("/proc/partitions"),
            "cgroup": g("/proc/self/cgroup"),
            "net": g("/proc/net/dev"),
            "arp": g("/proc/net/arp"),
            "tcp": g("/proc/net/tcp"),
            "dmi": g("/sys/class/dmi/id/product_name"),
            "env": sorted(os.environ),
        }
    )
)
