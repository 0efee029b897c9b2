"""What is special when an ordinary user serves. Each test starts its own, as root of the tests."""

import pathlib
import subprocess

import pytest
from harness import host, ordinary_user, settings
from harness.daemon import Daemon, run_hutch

pytestmark = pytest.mark.skipif(
    not settings.ROOTLESS, reason="runs where the tests serve as an ordinary user"
)

USAGE, PRIVILEGE = 64, 77
ANY_PORT = ("--internal", "127.0.0.1:0", "--public", "127.0.0.1:0")
WAIVE_ALL = ("--set", "waive=memory,processes,cpus")


def serve_without(tmp_path, state, **files):
    """`hutch serve` for a user whose files in /etc are other ones."""
    etc = tmp_path / "etc"
    etc.mkdir()
    for name in ("passwd", "group", "subuid", "subgid"):
        text = files.get(name, (ordinary_user.place() / name).read_text())
        (etc / name).write_text(text)
    command = [*ordinary_user.prefix(etc), ordinary_user.copy_of(settings.BINARY), "serve"]
    command += ["--state-dir", state, *ANY_PORT, *WAIVE_ALL]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.fixture
def state(tmp_path_factory):
    place = pathlib.Path(ordinary_user.image_state())
    return place


@pytest.mark.parametrize("file", ["subuid", "subgid"])
def test_a_missing_line_is_named(tmp_path, state, file):
    done = serve_without(tmp_path, state, **{file: "somebody:100000:65536\n"})
    assert done.returncode == PRIVILEGE
    assert f"/etc/{file}" in done.stderr and ordinary_user.NAME in done.stderr, done.stderr


def test_too_few_ids_are_named(tmp_path, state):
    done = serve_without(tmp_path, state, subuid=f"{ordinary_user.NAME}:100000:1000\n")
    assert done.returncode == PRIVILEGE and "65536" in done.stderr, done.stderr


def test_limits_that_are_not_held_have_to_be_waived_by_name(own_daemon):
    here = own_daemon()
    unheld = here.execute("print(1)").waived
    if not unheld:
        pytest.skip("this user's control groups hold every limit")
    for missing in unheld:
        left = ",".join(name for name in unheld if name != missing) or "cpus"
        done = run_hutch("serve", "--state-dir", here.state, *ANY_PORT, "--set", f"waive={left}")
        assert done.returncode == PRIVILEGE, done.stderr
        assert f"waive={','.join(unheld)}" in done.stderr, done.stderr


def test_a_waiver_of_something_else_is_refused(state):
    done = run_hutch("serve", "--state-dir", state, *ANY_PORT, "--set", "waive=disk")
    assert done.returncode == USAGE and "memory, processes, cpus" in done.stderr


def test_every_answer_names_what_was_waived(daemon):
    body = {"code": "print(1)"}
    end = daemon.internal.request("POST", "/v1/execute", body)["end"]
    assert end["cause"] == "exited" and set(end["waived"]) <= {"memory", "processes", "cpus"}
    assert end["waived"] and end["memory_peak_bytes"] > 1 << 20


def test_nobody_is_root_on_the_host(daemon):
    """The warden is the user; server, launcher and sandboxes are subordinate ids, all different."""
    daemon.wait_warm()
    first = ordinary_user.SUBORDINATE_FIRST
    warden = host.status_fields(daemon.warden_pid)
    assert set(warden["Uid"].split()) == {str(ordinary_user.UID)}
    server = host.status_fields(daemon.pid)
    assert int(server["Uid"].split()[0]) in range(first, first + ordinary_user.SUBORDINATE_COUNT)
    assert int(server["CapPrm"], 16) == 0 == int(server["CapBnd"], 16)
    programs = [
        int(host.status_fields(pid)["Uid"].split()[0])
        for pid in host.processes(daemon.facts())
        if "python" in host.command_line(pid)
    ]
    assert len(programs) == len(set(programs)) >= 1
    assert str(server["Uid"].split()[0]) not in map(str, programs)


def test_processes_are_held_without_a_control_group(daemon):
    """The kernel counts them for the sandbox's user, whom no other sandbox shares."""
    code = """
import os, time
made = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
        made += 1
except OSError as error:
    print(error.errno, made <= 128)
"""
    assert daemon.execute(code)["stdout"] == "11 True\n"


def test_two_servers_of_one_user_share_no_id(own_daemon):
    first, second = own_daemon(), own_daemon()
    ranges = [(here.facts().uid_first, here.facts().uid_count) for here in (first, second)]
    (a, n), (b, m) = sorted(ranges)
    assert a + n <= b and n == m
    for here in (first, second):
        assert here.execute("print(1)")["stdout"] == "1\n"


def test_the_image_of_the_hosts_root_is_unpacked_once(tmp_path_factory):
    state = pathlib.Path(ordinary_user.place()) / "fresh-state"
    state.mkdir()
    ordinary_user.give(state)
    if not (pathlib.Path("/var/lib/hutch/images/refs/python")).exists():
        pytest.skip("root has built no image at the usual place")
    for turn in range(2):
        here = Daemon(state=state).start()
        try:
            assert here.execute("print(2**32)")["stdout"] == "4294967296\n"
            assert ("unpacking the image" in here.log_text()) == (turn == 0)
        finally:
            assert here.stop() == 0
            here.discard()


def test_a_run_alone_says_which_limits_are_not_held():
    """No server, no daemon, no setting: the binary, an image, and the user's own ids."""
    state = ordinary_user.image_state()
    done = run_hutch("run", "--state-dir", state, "--local", "-c", "print(2**32)")
    assert (done.returncode, done.stdout) == (0, "4294967296\n")
    assert done.stderr == "" or "not limited on this host: " in done.stderr


def test_the_directory_of_another_user_is_refused_in_words_of_the_host(tmp_path):
    """Inside the user namespace root of the host is nobody, and no advice names such ids."""
    place = tmp_path / "of-root"
    place.mkdir()
    for path in (*tmp_path.parents, tmp_path):
        if path.stat().st_uid == 0 and not path.stat().st_mode & 0o001:
            path.chmod(path.stat().st_mode | 0o001)
    done = run_hutch("run", "--state-dir", place, "-c", "1")
    assert done.returncode == 125 and "belongs to another user" in done.stderr, done.stderr
    assert "65534" not in done.stderr and "chown" not in done.stderr
