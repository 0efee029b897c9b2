"""One `hutch serve` of a test's own: its directory, its log, its processes, its end."""

import atexit
import json
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time

from harness import host, ordinary_user, settings
from harness.client import Client
from harness.waiting import holds_within, wait_until

_READY_S = 60
_DRAIN_S = 70
_READY = re.compile(r"hutch ready internal=(\S+) public=(\S+)( testing=1)?$")


class StartFailed(Exception):
    """The process ended, or did not get ready. `status` is None for the latter."""

    def __init__(self, status, output, log):
        super().__init__(f"status {status}\nstdout: {output}\nstderr: {log[-3000:]}")
        self.status = status
        self.output = output
        self.log = log


def new_state_dir(images=True):
    """A fresh state directory that borrows the images built beforehand."""
    state = pathlib.Path(tempfile.mkdtemp(prefix="hutch-test-"))
    state.chmod(0o755)
    if images:
        (state / "images").symlink_to(image_state() / "images")
    if settings.ROOTLESS:
        ordinary_user.give(state)
    return state


def image_state():
    """The state directory with the image for the user that the tests run as."""
    return ordinary_user.image_state() if settings.ROOTLESS else settings.IMAGE_STATE


def command_line(binary=None, prefix=()):
    """How the tests' user runs the binary."""
    binary = binary or settings.BINARY
    if not settings.ROOTLESS:
        return [*prefix, binary]
    return [*ordinary_user.prefix(), *prefix, ordinary_user.copy_of(binary)]


def run_hutch(*arguments, binary=None, timeout_s=60, **more):
    """A command of the binary that ends by itself."""
    return subprocess.run(
        [*command_line(binary), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout_s * settings.SLACK,
        **more,
    )


class Daemon:
    def __init__(
        self,
        sets=None,
        testing=False,
        state=None,
        arguments=(),
        environment=None,
        prefix=(),
        log_to_closed_pipe=False,
    ):
        self.binary = settings.TESTING_BINARY if testing else settings.BINARY
        self.owns_state = state is None
        self.state = pathlib.Path(state) if state else new_state_dir()
        self.sets = dict(sets or {})
        if settings.ROOTLESS:
            # What no control group holds for an ordinary user of a host like the tests'.
            self.sets.setdefault("waive", "memory,processes,cpus")
        self.arguments = list(arguments)
        self.prefix = list(prefix)  # a command that runs the binary, prlimit say
        self.environment = {**os.environ, "SBX_TEST_CANARY": settings.CANARY, **(environment or {})}
        self.log_path = pathlib.Path(tempfile.mkstemp(prefix="hutch-log-")[1])
        self.log_to_closed_pipe = log_to_closed_pipe
        self.process = None
        self.internal = self.public = None
        self.warden_pid = None
        self._facts = None

    # --- start and end

    def spawn(self):
        """Starts the process and does not wait for it to get ready."""
        command = command_line(self.binary, self.prefix)
        command += ["serve", "--state-dir", str(self.state)]
        command += self.arguments or ["--internal", "127.0.0.1:0", "--public", "127.0.0.1:0"]
        for key, value in self.sets.items():
            command += ["--set", f"{key}={value}"]
        with self._open_log() as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self.environment,
                cwd="/",
            )
        atexit.register(self._leave_nothing)
        return self

    def _open_log(self):
        if not self.log_to_closed_pipe:
            return open(self.log_path, "ab")
        reader, writer = os.pipe()
        os.close(reader)
        return open(writer, "wb")

    def start(self):
        self.spawn()
        line = self.ready_line()
        match = _READY.match(line)
        if not match:
            status = None
            if holds_within(lambda: self.process.poll() is not None, 5):
                status = self.process.returncode
            else:
                self.kill()
            raise StartFailed(status, line, self.log_text())
        self.internal, self.public = Client(match[1]), Client(match[2])
        self.testing = bool(match[3])
        self.warden_pid = int((self.state / "warden.pid").read_text())
        return self

    def ready_line(self):
        deadline = time.monotonic() + _READY_S * settings.SLACK
        data = b""
        while b"\n" not in data and time.monotonic() < deadline:
            readable, _, _ = select.select([self.process.stdout], [], [], 0.2)
            if readable:
                part = os.read(self.process.stdout.fileno(), 4096)
                if not part:
                    break
                data += part
        return data.decode(errors="replace").split("\n")[0]

    @property
    def pid(self):
        return self.process.pid

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def wait(self, seconds=_DRAIN_S):
        return self.process.wait(timeout=seconds * settings.SLACK)

    def stop(self):
        """SIGTERM; the exit status."""
        self.terminate()
        return self.wait()

    def kill(self):
        """SIGKILL for the server, as a crash would be; its warden has to notice by itself."""
        if self.alive():
            self.process.kill()
            self.process.wait()

    def discard(self):
        """Removes the files. The daemon has ended."""
        atexit.unregister(self._leave_nothing)
        if self.process and self.process.stdout:
            self.process.stdout.close()
        if self.owns_state:
            shutil.rmtree(self.state, ignore_errors=True)
        self.log_path.unlink(missing_ok=True)

    def _leave_nothing(self):
        if self.alive():
            self.terminate()
            if not holds_within(lambda: not self.alive(), 5):
                self.kill()

    # --- what it says about itself

    def log_text(self):
        return self.log_path.read_text(errors="replace")

    def log_records(self):
        """The log as objects: every line of it is JSON."""
        return [json.loads(line) for line in self.log_path.read_bytes().split(b"\n") if line]

    def doctor(self):
        done = run_hutch("doctor", "--json", "--state-dir", self.state, binary=self.binary)
        assert done.stdout, f"doctor said nothing; status {done.returncode}: {done.stderr}"
        return json.loads(done.stdout)

    def facts(self):
        """Where everything that this daemon makes can be found on the host."""
        if self._facts is None:
            self._facts = host.Facts.of(self.doctor())
        return self._facts

    def metric(self, name):
        """The sum over all labels of one metric."""
        total = 0.0
        for line in self.internal.get("/metrics").body.decode().splitlines():
            if re.match(rf"{re.escape(name)}(\{{| )", line):
                total += float(line.rsplit(" ", 1)[1])
        return total

    # --- requests

    def execute(self, code, **fields):
        return self.internal.execute(code, **fields)

    def pool(self):
        return self.internal.pool()

    def wait_warm(self, seconds=10):
        def full():
            now = self.pool()
            return now["warm"] == now["target"] and now["in_flight"] == 0

        wait_until(full, seconds, lambda: f"the pool is {self.pool()}")
