# No interface but lo, no route, no resolver, no listener of the host, no service socket.
import socket

ifs = [l.split(":")[0].strip() for l in open("/proc/net/dev").read().splitlines()[2:]]
if set(ifs) - {"lo"}:
    bad("interfaces", ifs)
r = open("/proc/net/route").read().splitlines()[1:]
if r:
    bad("routes", r)
try:
    v6 = [l.split() for l in open("/proc/net/if_inet6")]
    if any((x[-1] != "lo" for x in v6)):
        bad("ipv6", v6)
except OSError:
    pass
for fam, ip in (
    (2, "192.0.2.1"),
    (2, "169.254.169.254"),
    (2, "10.0.0.1"),
    (10, "fd00:ec2::254"),
    (10, "2001:db8::1"),
):
    try:
        s = socket.socket(fam, 2)
        s.connect((ip, 53))
        bad("route to", ip)
    except OSError:
        pass
t = time.time()
try:
    socket.getaddrinfo("probe.invalid", 80)
    bad("DNS resolved")
except OSError:
    pass
if time.time() - t > 3:
    bad("DNS hangs", time.time() - t)
for p in (8080, 8000, 22, 2375, 80, 443):
    try:
        socket.create_connection(("127.0.0.1", p), 0.5)
        bad("reached a host listener on loopback", p)
    except OSError:
        pass
for p in (
    "/var/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/dbus/system_bus_socket",
    "/run/systemd/private",
    "/run/snapd.socket",
):
    if os.path.exists(p):
        bad("socket file visible", p)
verdict()
