"""Plays the engine for one process: a file system of its own, the runner's socket, both streams.

A stage is one interpreter inside bubblewrap with /work, /code and /opt/hutch in the places the
sandbox has them. `plain` runs a source as `python3 /work/main.py`, `warm` runs the same source
through the warm runner, and both give back what came out.
"""

import dataclasses
import json
import os
import pathlib
import socket
import struct
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNNER = ROOT / "src" / "guest" / "python"
BACKEND = ROOT / "images" / "python" / "files"
WAIT_S = 60


@dataclasses.dataclass
class Ended:
    stdout: bytes
    stderr: bytes
    status: int
    files: dict

    def seen(self):
        """What a user sees, with the program's own path written the same for both ways."""
        return (
            self.stdout.replace(b"/code/main.py", b"/work/main.py"),
            self.stderr.replace(b"/code/main.py", b"/work/main.py"),
            self.status,
        )


@dataclasses.dataclass
class Interpreter:
    """A python3: the host's own, or one in an unpacked image (`root`)."""

    path: str
    root: str = ""

    def mounts(self):
        if self.root:
            top = ("usr", "bin", "lib", "lib64", "sbin", "etc", "opt/image", "var")
            binds = [["--ro-bind-try", f"{self.root}/{name}", f"/{name}"] for name in top]
            # The backend of this tree, not the one that the image was built with.
            for old in pathlib.Path(self.root).glob("usr/local/lib/python3*/*/hutch_mpl.py"):
                inside = f"/{old.relative_to(self.root)}"
                binds.append(["--ro-bind", str(BACKEND / "hutch_mpl.py"), inside])
                # Compiled files of an image are not compared with their source.
                for compiled in old.parent.glob("__pycache__/hutch_mpl.*.pyc"):
                    binds.append(["--ro-bind", "/dev/null", f"/{compiled.relative_to(self.root)}"])
            return sum(binds, [])
        top = sorted({"/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", *self._prefixes()})
        return sum((["--ro-bind-try", name, name] for name in top), [])

    def _prefixes(self):
        asked = "import sys; print(sys.prefix, sys.base_prefix, sep='\\n')"
        answer = subprocess.run(
            [self.path, "-c", asked], capture_output=True, text=True, check=True
        )
        return [p for p in answer.stdout.split() if not p.startswith("/usr")]


def unpacked_image():
    """The image that the product uses, as a directory below build/; "" when there is none."""
    hutch = os.environ.get("HUTCH_BIN", str(ROOT / "build" / "release" / "hutch"))
    state = os.environ.get("HUTCH_TEST_IMAGE_STATE") or os.environ.get("HUTCH_STATE_DIR")
    command = [hutch, "image", "path", "python", *(["--state-dir", state] if state else [])]
    try:
        asked = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return ""
    image = pathlib.Path(asked.stdout.strip())
    if asked.returncode != 0 or image.is_dir():
        return str(image) if asked.returncode == 0 else ""
    unpacked = ROOT / "build" / "test-rootfs" / image.stem
    if not unpacked.is_dir():
        fresh = unpacked.with_suffix(".new")
        fresh.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["rm", "-rf", str(fresh)], check=True)
        extract = ["fsck.erofs", f"--extract={fresh}", str(image)]
        subprocess.run(extract, check=True, capture_output=True)
        fresh.rename(unpacked)
    return str(unpacked)


def interpreters():
    """HUTCH_TEST_ROOTFS (an unpacked image) or HUTCH_TEST_PYTHON (paths, colon between them),
    else the image's own interpreter, else the one that runs the tests."""
    import sys

    if paths := os.environ.get("HUTCH_TEST_PYTHON"):
        return [Interpreter(path) for path in paths.split(":")]
    if root := os.environ.get("HUTCH_TEST_ROOTFS") or unpacked_image():
        return [Interpreter("python3", root)]
    return [Interpreter(sys.executable)]


class Stage:
    def __init__(self, interpreter, *, files=None, environment=None, read_only_work=False):
        self.interpreter = interpreter
        self.files = files or {}
        self.environment = environment or {}
        self.read_only_work = read_only_work

    def _command(self, work, environment, program):
        command = ["bwrap", "--unshare-pid", "--unshare-ipc", "--unshare-net", "--die-with-parent"]
        command += ["--tmpfs", "/tmp"]
        command += ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/dev/shm"]
        command += self.interpreter.mounts()
        command += ["--dir", "/home/sandbox"]
        command += ["--dir", "/run/code", "--symlink", "run/code", "/code"]
        command += [
            "--ro-bind",
            str(RUNNER),
            "/opt/hutch",
            "--ro-bind",
            str(BACKEND),
            "/opt/hutch-mpl",
        ]
        command += ["--ro-bind" if self.read_only_work else "--bind", work, "/work"]
        command += ["--chdir", "/work", "--clearenv"]
        base = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": "/home/sandbox",
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "PYTHONHASHSEED": "0",
        }
        for name, value in {**base, **self.environment, **environment}.items():
            command += ["--setenv", name, value]
        return [*command, self.interpreter.path, *program]

    def _start(self, work, environment, program, code_socket):
        command = self._command(work, environment, program)
        if code_socket is not None:
            place = f'exec "$@" 3<&{code_socket} {code_socket}<&-'
            command = ["bash", "-c", place, "bash", *command]
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=() if code_socket is None else (code_socket,),
        )

    def plain(self, source, arguments=()):
        with tempfile.TemporaryDirectory(prefix="hutch-plain-") as work:
            self._fill(work)
            pathlib.Path(work, "main.py").write_bytes(source)
            process = self._start(work, {}, ["/work/main.py", *arguments], None)
            out, err = process.communicate(timeout=WAIT_S)
            return Ended(out, err, process.returncode, self._collect(work))

    def warm(self, source, arguments=(), *, imports=(), before_end=None):
        """`before_end` gets the WarmProcess once the program has been sent."""
        with tempfile.TemporaryDirectory(prefix="hutch-warm-") as work:
            with WarmProcess(self, work, imports) as warm:
                if warm.wait_ready():
                    self._fill(work)
                    warm.send(source, arguments)
                if before_end:
                    before_end(warm)
                out, err = warm.process.communicate(timeout=WAIT_S)
            return Ended(out, err, warm.process.returncode, self._collect(work))

    def _fill(self, work):
        for path, content in self.files.items():
            target = pathlib.Path(work, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)

    @staticmethod
    def _collect(work):
        found = (p for p in pathlib.Path(work).rglob("*") if p.is_file())
        return {
            str(p.relative_to(work)): p.read_bytes()
            for p in found
            if "__pycache__" not in p.parts and p.name != "main.py"
        }


class WarmProcess:
    """The warden's side of the runner's socket."""

    def __init__(self, stage, work, imports):
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(WAIT_S)
        with theirs:
            environment = {"PYTHONPATH": "/opt/hutch"}
            self.process = stage._start(work, environment, ["/code/main.py"], theirs.fileno())
        message = json.dumps({"imports": list(imports)}).encode()
        self.socket.sendall(struct.pack("<I", len(message)) + message)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def wait_ready(self):
        try:
            return self.socket.recv(1) == b"R"
        except ConnectionResetError:
            return False

    def pid(self):
        """The program, seen from outside: bubblewrap's pid 1 is between it and what was started."""
        pid = self.process.pid
        for _ in range(2):
            with open(f"/proc/{pid}/task/{pid}/children") as children:
                pid = int(children.read().split()[0])
        return pid

    def send(self, source, arguments=()):
        message = b"".join(argument.encode() + b"\0" for argument in arguments)
        self.socket.sendall(struct.pack("<I", len(message)) + message)
        self.socket.sendall(struct.pack("<Q", len(source)) + source)
