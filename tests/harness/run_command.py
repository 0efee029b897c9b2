"""`hutch run` as a test's own command: against a daemon, or with a server of that run alone."""

import dataclasses
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

from harness import host, ordinary_user, settings
from harness.daemon import command_line, new_state_dir
from harness.waiting import wait_until

PATIENCE_S = 60
_GONE_S = 15
# What an ordinary user is told at the end of each run.
_WAIVED = re.compile(rb"^hutch: not limited on this host: .*\n", re.MULTILINE)


@dataclasses.dataclass
class Ended:
    code: int
    out: bytes
    err: bytes

    @property
    def words(self):
        return self.err.decode(errors="replace")


class RunCommand:
    """Runs `hutch run` in a directory and a home of its own.

    `url` is a daemon's internal address; None: each run makes its own server below `state`; empty:
    nothing is said about either.
    """

    def __init__(self, url=None):
        self.url = url
        self.state = new_state_dir() if url is None else None
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="hutch-run-"))
        self.place.chmod(0o755)
        (self.place / "home").mkdir()
        self.mounts = host.mount_lines()
        self.give()

    def give(self):
        """What the test has put into its directory becomes the user's that runs the command."""
        if not settings.ROOTLESS:
            return
        for path in [self.place, *self.place.rglob("*")]:
            if not path.is_symlink():
                ordinary_user.give(path)

    @property
    def is_private(self):
        return self.state is not None

    def environment(self, more=None):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("HUTCH_")}
        home = str(self.place / "home")
        kept |= {"HOME": home, "XDG_CONFIG_HOME": home, "SBX_TEST_CANARY": settings.CANARY}
        if self.url:
            kept["HUTCH_INTERNAL_URL"] = self.url
        return {**kept, **(more or {})}

    def arguments(self, *given):
        mine = [] if self.state is None else ["--state-dir", self.state]
        return [*command_line(), "run", *map(str, mine), *map(os.fsencode, map(_text, given))]

    def start(self, *given, environment=None, **more):
        """The running command; its three streams are pipes unless said otherwise."""
        pipes = {name: subprocess.PIPE for name in ("stdin", "stdout", "stderr")} | more
        return subprocess.Popen(
            self.arguments(*given), cwd=self.place, env=self.environment(environment), **pipes
        )

    def run(self, *given, stdin=b"", **more):
        process = self.start(*given, **more)
        try:
            out, err = process.communicate(stdin, timeout=PATIENCE_S * settings.SLACK)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        if settings.ROOTLESS and self.is_private:
            err = _WAIVED.sub(b"", err)
        return Ended(process.returncode, out, err)

    # --- what is left

    def tree(self, pid):
        """{pid: start time} of a process and everything below it."""
        found = {}
        waiting = [pid]
        while waiting:
            one = waiting.pop()
            if (begun := _start_time(one)) is not None:
                found[one] = begun
                waiting += host.children_of(one)
        return found

    def check_gone(self, tree):
        """No process of `tree` is left, and nothing else of its server."""

        def alive():
            return [_show(pid) for pid, begun in tree.items() if _start_time(pid) == begun]

        wait_until(lambda: not alive(), _GONE_S, lambda: f"still there: {alive()}")
        self.check_clean()

    def check_clean(self):
        assert host.mount_lines() <= self.mounts
        if self.state is None:
            return
        for place in sorted(self.state.glob("run/*")):
            with open(place / "server.lock") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            ledger = place / "instance.json"
            if not ledger.exists():
                continue
            prefixes = tuple(json.loads(ledger.read_text())["cgroup_prefixes"])
            assert not host.cgroup_dirs(host.Facts(0, 0, prefixes)), f"cgroups of {place}"

    def end(self):
        shutil.rmtree(self.place, ignore_errors=True)
        if self.state:
            shutil.rmtree(self.state, ignore_errors=True)


def _text(argument):
    return argument if isinstance(argument, (str, bytes)) else str(argument)


def _start_time(pid):
    """Together with the number it names one process for good; None when it has ended."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def _show(pid):
    return f"{pid} {host.command_line(pid)}"


def end_quietly(process):
    """For a test that failed half way."""
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
        process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            stream.close()
