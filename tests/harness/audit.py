"""Nothing is left: the numbers of a daemon at rest, and the check that they came back."""

import collections
import dataclasses

from harness import host, settings
from harness.waiting import wait_until

_SETTLE_S = 10
_PROBE_S = 2
_GONE_S = 10
_STILL = 20  # looks in a row that see the same


@dataclasses.dataclass
class Level:
    """What a daemon at rest has; lists beside the numbers say what is too much."""

    processes: dict
    cgroups: list
    mounts: set
    namespaces: set
    server_fds: dict
    warden_fds: dict
    created_total: int = 0  # at the last audit: nothing has run since while it is the same

    def numbers(self):
        return {
            "processes": len(self.processes),
            "cgroups": len(self.cgroups),
            "network namespaces": len(self.namespaces),
            "server descriptors": len(self.server_fds),
            "warden descriptors": len(self.warden_fds),
        }


def measure(daemon):
    facts = daemon.facts()
    processes = host.processes(facts)
    return Level(
        processes=processes,
        cgroups=host.cgroup_dirs(facts),
        mounts=host.mount_lines(),
        namespaces=host.network_namespaces(processes),
        server_fds=host.descriptors(daemon.pid),
        warden_fds=host.descriptors(daemon.warden_pid),
    )


def _kinds(descriptors):
    """What the descriptors point at, numbers of sockets and pipes aside."""
    return collections.Counter(target.split(":[")[0] for target in descriptors.values())


def difference(base, now):
    """What the daemon has now and had not before, in words; empty when it is back."""
    lines = []
    was, here = base.numbers(), now.numbers()
    for name in was:
        if here[name] != was[name]:
            lines.append(f"{name}: {was[name]} before, {here[name]} now")
    if lines:
        for pid in sorted(set(now.processes) - set(base.processes)):
            lines.append(f"  process {pid}: {now.processes[pid]}")
        for path in sorted(set(now.cgroups) - set(base.cgroups)):
            lines.append(f"  cgroup {path}")
        for name in ("server_fds", "warden_fds"):
            before, after = _kinds(getattr(base, name)), _kinds(getattr(now, name))
            if more := after - before:
                lines.append(f"  {name}: more {dict(more)}")
            if fewer := before - after:
                lines.append(f"  {name}: fewer {dict(fewer)}")
    for line in sorted(now.mounts - base.mounts):
        lines.append(f"mount on the host: {line}")
    return lines


def settle(daemon):
    """The level of a daemon that has just become ready: after one run, with a full pool."""
    daemon.execute("print('settled')").ok()
    daemon.wait_warm()
    seen = []

    def at_rest():
        # A connection that its client has closed may still be the server's for a moment.
        seen.append(measure(daemon))
        last = seen[-_STILL:]
        return len(last) == _STILL and not any(difference(last[0], one) for one in last)

    wait_until(at_rest, _SETTLE_S, "a daemon that nobody asks anything of does not come to rest")
    return seen[-1]


def check(daemon, base):
    """Fails unless the daemon answers at once and is back at `base`."""
    assert daemon.alive(), f"the server ended: {daemon.log_text()[-3000:]}"
    if daemon.pool()["created_total"] != base.created_total:
        probe(daemon)
    daemon.wait_warm(_SETTLE_S)
    latest = []

    def back():
        latest[:] = difference(base, measure(daemon))
        return not latest

    wait_until(back, _SETTLE_S, lambda: "not back at rest:\n" + "\n".join(latest))
    wait_until(
        lambda: not host.marked_processes(),
        2,
        lambda: f"marked processes on the host: {host.marked_processes()}",
    )
    base.created_total = daemon.pool()["created_total"]


def probe(daemon):
    """A plain run right after whatever the test did: it works, and it is quick."""
    answer = daemon.execute("print(1)")
    assert answer.ok()["stdout"] == "1\n", answer.body
    assert answer.seconds < _PROBE_S * settings.SLACK, f"print(1) took {answer.seconds:.2f} s"


def remains(facts, mounts_before):
    """What a daemon that has ended left on the host, in words."""
    lines = [f"process {pid}: {text}" for pid, text in host.processes(facts).items()]
    lines += [f"cgroup {path}" for path in host.cgroup_dirs(facts)]
    lines += [f"mount {line}" for line in sorted(host.mount_lines() - mounts_before)]
    return lines


def check_gone(facts, mounts_before, seconds=_GONE_S):
    wait_until(
        lambda: not remains(facts, mounts_before),
        seconds,
        lambda: "left on the host:\n" + "\n".join(remains(facts, mounts_before)),
    )
