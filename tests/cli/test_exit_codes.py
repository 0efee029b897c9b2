"""How `hutch serve` ends: one exit code for each kind of failure, and the line that goes with it.
Needs root; the tests of a running server need an image as well."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess

import pytest
from harness import settings
from harness.daemon import Daemon, StartFailed, new_state_dir, run_hutch

USAGE, UNSUPPORTED, INTERNAL, STATE, PORT, NO_IMAGE, PRIVILEGE = 64, 69, 70, 73, 75, 76, 77
ANY_PORT = ["--internal", "127.0.0.1:0", "--public", "127.0.0.1:0"]


@pytest.fixture
def state():
    path = new_state_dir()
    yield path
    shutil.rmtree(path, ignore_errors=True)


def serve(*arguments, **more):
    """Exit code and the last line of standard error of a start that fails."""
    done = run_hutch("serve", *arguments, **more)
    assert done.stdout == ""
    return done.returncode, done.stderr.splitlines()[-1]


def test_64_a_setting(state):
    code, line = serve("--state-dir", state, "--set", "pool.size=3")
    assert code == USAGE and line.startswith('hutch: --set pool.size=3: unknown key "pool.size"')


def test_69_a_kernel_that_hides_parts_of_proc(state):
    """As in a container: the kernel then refuses a fresh /proc to sandboxes."""
    script = 'mount --bind /dev/null /proc/timer_list && exec "$@"'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", settings.BINARY, "serve", *ANY_PORT]
        + ["--state-dir", state],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == UNSUPPORTED, done
    line = done.stderr.splitlines()[-1]
    assert line.startswith("hutch: Parts of /proc are covered") and "Remedy: " in line


def test_70_the_warden_is_killed(state):
    here = Daemon(state=state).start()
    os.kill(here.warden_pid, signal.SIGKILL)
    assert here.wait(20) == INTERNAL
    ended = [record for record in here.log_records() if record["event"] == "warden_ended"]
    assert ended[0]["level"] == "error" and ended[0]["signal"] == 9
    here.discard()
    # Control groups outlive a warden that was killed; the next start sweeps them.
    again = Daemon(state=state).start()
    assert again.stop() == 0
    again.discard()


def test_73_a_directory_that_somebody_holds(state):
    here = Daemon(state=state).start()
    code, line = serve("--state-dir", state, *ANY_PORT)
    assert code == STATE
    assert f"the state directory {state} is in use by process {here.pid}" in line
    assert here.stop() == 0
    here.discard()


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda path: os.chmod(path, 0o777), "chmod go-w"),
        (lambda path: os.chown(path, 1234, 1234), "belongs to uid 1234"),
    ],
)
def test_73_a_directory_that_others_can_write(state, change, words):
    change(state)
    code, line = serve("--state-dir", state, *ANY_PORT)
    assert code == STATE and words in line and str(state) in line
    done = run_hutch("run", "--local", "--state-dir", state, "-c", "1")
    assert done.returncode == 125 and words in done.stderr, done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["run", "-c", "1", "--out", ""],
        ["run", "-c", "1", "--image", ""],
        ["config", "--state-dir", ""],
        ["image", "ls", "--state-dir", ""],
    ],
)
def test_64_an_empty_value(command):
    """As a script passes it whose variable is not set; never the same as leaving it out."""
    done = run_hutch(*command)
    assert done.returncode == (125 if command[0] == "run" else 64)
    assert "the value is empty" in done.stderr and done.stdout == "", done.stderr


@pytest.mark.parametrize("place", ["/proc/hutch", "/dev/null/hutch"])
def test_73_a_place_where_nothing_can_be_written(place):
    code, line = serve("--state-dir", place, *ANY_PORT)
    assert code == STATE and f"the state directory {place} is not usable" in line


@pytest.mark.parametrize(
    "flag, other", [("--internal", "--public"), ("--public", "--internal")]
)
def test_75_a_port_that_is_taken(state, flag, other):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, line = serve("--state-dir", state, flag, f"127.0.0.1:{port}", other, "127.0.0.1:0")
    assert code == PORT, line
    assert f"port {port}" in line and flag in line and "Address already in use" in line


def test_76_no_image():
    place = new_state_dir(images=False)
    code, line = serve("--state-dir", place, *ANY_PORT)
    shutil.rmtree(place)
    assert code == NO_IMAGE
    assert f'no image "python" in {place}' in line and "hutch image build python" in line


def test_77_not_root(state):
    os.chown(state, 65534, 65534)
    nobody = {"user": 65534, "group": 65534, "extra_groups": []}
    # Root's own home has settings that nobody else can read.
    elsewhere = {**os.environ, "HOME": "/nonexistent"}
    code, line = serve("--state-dir", state, *ANY_PORT, **nobody, env=elsewhere)
    assert code == PRIVILEGE and "root" in line


def test_0_and_the_files_that_are_left(state):
    here = Daemon(state=state).start()
    assert (state / "server.pid").read_text() == f"{here.pid}\n"
    # A server that is taken over cannot name another process to whoever sends signals by them.
    for entry in os.listdir(f"/proc/{here.pid}/fd"):
        if os.readlink(f"/proc/{here.pid}/fd/{entry}").startswith(f"{state}/"):
            info = pathlib.Path(f"/proc/{here.pid}/fdinfo/{entry}").read_text()
            assert int(info.split("flags:")[1].split()[0], 8) & os.O_ACCMODE == os.O_RDONLY
    assert here.stop() == 0
    # Whoever reads a stale pid file must not find a number that belongs to somebody else.
    for name in ("server.pid", "warden.pid"):
        assert not (state / name).exists() or (state / name).read_text() == ""
    here.discard()


def test_a_stale_pid_file_is_harmless(state):
    for name in ("server.pid", "warden.pid", "server.lock"):
        (state / name).write_text("1\n")
    here = Daemon(state=state).start()
    assert here.stop() == 0
    here.discard()


def test_every_line_of_a_failed_start_but_the_last_is_json(state):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        here = Daemon(state=state, arguments=["--internal", address, "--public", "127.0.0.1:0"])
        with pytest.raises(StartFailed) as caught:
            here.start()
    *lines, last = caught.value.log.splitlines()
    assert all(line.startswith("{") for line in lines) and last.startswith("hutch: ")
    here.discard()
