"""What the host's kernel says about the processes, groups and mounts of one daemon."""

import dataclasses
import os
import pathlib

from harness import settings


@dataclasses.dataclass(frozen=True)
class Facts:
    """What does not change while a daemon runs."""

    uid_first: int
    uid_count: int
    cgroup_prefixes: tuple  # absolute; the path of every group of the daemon starts with one

    @classmethod
    def of(cls, doctor):
        uids = doctor["uid_range"]
        return cls(uids["first"], uids["count"], tuple(doctor["cgroup_prefixes"]))


def _pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def status_fields(pid):
    """/proc/<pid>/status as a dictionary; empty when the process is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        return {}
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def command_line(pid):
    try:
        return (
            pathlib.Path(f"/proc/{pid}/cmdline")
            .read_bytes()
            .replace(b"\0", b" ")
            .decode(errors="replace")
        )
    except OSError:
        return ""


def processes(facts):
    """{pid: what it is} of every process whose real uid lies in the daemon's range."""
    found = {}
    for pid in _pids():
        fields = status_fields(pid)
        if not fields:
            continue
        uid = int(fields["Uid"].split()[0])
        if facts.uid_first <= uid < facts.uid_first + facts.uid_count:
            state = fields["State"].split()[0]
            found[pid] = f"{fields['Name']} {state} uid {uid} {command_line(pid)[:100]}"
    return found


def marked_processes(mark=settings.MARK):
    """{pid: command line} of every process on the host that carries the mark."""
    lines = {pid: command_line(pid) for pid in _pids() if pid != os.getpid()}
    return {pid: line for pid, line in lines.items() if mark in line}


def cgroup_dirs(facts):
    """Every directory of a cgroup hierarchy whose path starts with one of the prefixes."""
    found = []
    for prefix in facts.cgroup_prefixes:
        parent, name = os.path.split(prefix)
        for top in sorted(pathlib.Path(parent).glob(name + "*")):
            found.append(str(top))
            for root, directories, _ in os.walk(top):
                found += [os.path.join(root, directory) for directory in directories]
    return found


def cgroup_processes(facts):
    """{directory: pids} of the daemon's groups that are not empty."""
    found = {}
    for path in cgroup_dirs(facts):
        try:
            pids = pathlib.Path(path, "cgroup.procs").read_text().split()
        except OSError:
            continue
        if pids:
            found[path] = pids
    return found


def mount_lines(pid="self"):
    try:
        return set(pathlib.Path(f"/proc/{pid}/mountinfo").read_text().splitlines())
    except OSError:
        return set()


def network_namespaces(pids):
    """The distinct network namespaces that these processes live in."""
    found = set()
    for pid in pids:
        try:
            found.add(os.readlink(f"/proc/{pid}/ns/net"))
        except OSError:
            continue
    return found


def descriptors(pid):
    """{fd: what it is} of one process; empty when it is gone."""
    found = {}
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return found
    for name in names:
        try:
            found[int(name)] = os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue
    return found


def resident_bytes(pid):
    fields = status_fields(pid)
    return int(fields["VmRSS"].split()[0]) * 1024 if "VmRSS" in fields else 0


def children_of(pid):
    return [child for child in _pids() if status_fields(child).get("PPid", "").strip() == str(pid)]


def cpu_seconds(pid):
    """User and system time of a process since its start."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
