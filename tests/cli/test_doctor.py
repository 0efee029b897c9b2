"""`hutch doctor`, for root, for others, and for root asking about others."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest
from harness import settings
from harness.daemon import Daemon, new_state_dir, run_hutch
from harness.waiting import wait_until

USAGE, PRIVILEGE = 64, 77
FIRST_INSIDE = 2_000_000_000  # ids of nobody, for user namespaces of tests
AS_NOBODY = {
    "user": 65534,
    "group": 65534,
    "extra_groups": [],
    "env": {"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
}


@pytest.fixture
def state():
    path = new_state_dir()
    yield path
    shutil.rmtree(path, ignore_errors=True)


def findings(done):
    return {one["name"]: one for one in json.loads(done.stdout)["findings"]}


def test_every_line_is_documented_in_its_order(state):
    done = run_hutch("doctor", "--state-dir", state)
    lines = re.findall(r"^(?:PASS|CAUTION|FAIL|SKIPPED) +(\w+) ", done.stdout, re.M)
    text = (settings.ROOT / "docs" / "doctor.md").read_text()
    assert lines == re.findall(r"^\| `(\w+)`", text, re.M)


@pytest.mark.as_root
def test_each_caution_and_each_failure_has_a_remedy(state):
    for more in ({}, AS_NOBODY):
        found = findings(run_hutch("doctor", "--json", "--state-dir", state, **more))
        for one in found.values():
            assert bool(one["remedy"]) == (one["verdict"] in ("CAUTION", "FAIL")), one
            assert one["meaning"].endswith("."), one


@pytest.mark.as_root
def test_root_is_fit_here(state):
    done = run_hutch("doctor", "--json", "--state-dir", state)
    assert done.returncode == 0 and json.loads(done.stdout)["fit"] is True
    assert findings(done)["subordinate_ids"]["verdict"] == "SKIPPED"
    said = json.loads(done.stdout)
    assert said["rootless"] is False and said["user"] == "root"


@pytest.mark.as_root
def test_an_ordinary_user_is_told_the_line_to_add(state):
    done = run_hutch("doctor", "--json", "--state-dir", state, **AS_NOBODY)
    assert done.returncode == PRIVILEGE
    found = findings(done)
    assert found["privilege"]["meaning"].startswith("Rootless")
    wanted = r"echo 'nobody:\d+:65536' \| sudo tee -a /etc/subuid /etc/subgid"
    assert re.fullmatch(wanted, found["subordinate_ids"]["remedy"])


@pytest.mark.skipif(not settings.ROOTLESS, reason="about the user of tests without root")
def test_an_ordinary_user_who_has_everything_is_fit(state):
    waive = ("--set", "waive=memory,processes,cpus")
    done = run_hutch("doctor", "--json", "--state-dir", state, *waive)
    assert done.returncode == 0, done.stdout
    found = findings(done)
    assert found["subordinate_ids"]["verdict"] == found["id_map_tools"]["verdict"] == "PASS"


@pytest.mark.as_root
def test_root_asks_about_an_ordinary_user(state):
    done = run_hutch("doctor", "--json", "--user", "nobody", "--state-dir", state)
    assert done.returncode == PRIVILEGE
    assert "nobody" in findings(done)["subordinate_ids"]["remedy"]
    said = json.loads(done.stdout)
    assert said["rootless"] is True and said["user"] == "nobody"
    behind = {**os.environ, "SUDO_USER": "nobody"}
    again = run_hutch("doctor", "--json", "--rootless", "--state-dir", state, env=behind)
    assert findings(again)["subordinate_ids"] == findings(done)["subordinate_ids"]


@pytest.mark.as_root
def test_only_root_asks_about_others():
    done = run_hutch("doctor", "--user", "root", **AS_NOBODY)
    assert done.returncode == USAGE and "--user is for root" in done.stderr


@pytest.mark.as_root
@pytest.mark.parametrize("flags", [["--user", "nobody-of-that-name"], ["--rootless"]])
def test_a_user_that_is_not_known_is_asked_for(flags):
    without = {key: value for key, value in os.environ.items() if key != "SUDO_USER"}
    done = run_hutch("doctor", *flags, env=without)
    assert done.returncode == USAGE and done.stdout == "" and "user" in done.stderr


def inside(change):
    """A command that runs another one in mounts of its own, after that change of them."""
    script = change + ' && exec "$@"'
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh"]


LACKS = {
    "few descriptors": (["prlimit", "--nofile=48:48"], "open_files", "48 files (ulimit -Hn)"),
    "a small stack": (["prlimit", "--stack=1048576:1048576"], "resource_limits", "stack (1048576"),
    "no locked memory": (["prlimit", "--memlock=0:0"], "resource_limits", "memlock (0"),
    "a covered /proc": (inside("mount -t tmpfs none /proc/acpi"), "proc", "/proc/acpi"),
    "a /proc to read": (inside("mount -o remount,bind,ro /proc"), "proc", "read-only"),
    "a /run to read": (inside("mount -t tmpfs -o ro none /run"), "run_directory", "/run/hutch"),
    "no groups": (inside("umount -l -R /sys/fs/cgroup"), "cgroups", "no control groups"),
    "no capability": (
        ["setpriv", "--bounding-set", "-mknod", "--inh-caps", "-mknod"], "privilege", "CAP_MKNOD",
    ),
}  # fmt: skip


@pytest.mark.as_root
@pytest.mark.parametrize("lack", LACKS)
def test_doctor_and_start_refuse_a_real_host_that_lacks(lack, state):
    """The host is this one, with one thing taken away; the two say the same sentence."""
    prefix, name, words = LACKS[lack]
    command = [*prefix[1:], settings.BINARY]
    done = run_hutch(*command, "doctor", "--json", "--state-dir", state, binary=prefix[0])
    one = findings(done)[name]
    assert one["verdict"] == "FAIL" and words in one["meaning"], one
    started = run_hutch(*command, "serve", "--state-dir", state, binary=prefix[0])
    assert started.returncode == done.returncode != 0
    assert f"{one['meaning']} Remedy: {one['remedy']}" in started.stderr
    planned = run_hutch(*command, "plan", "--json", "--state-dir", state, binary=prefix[0])
    assert one in json.loads(planned.stdout)["host"]


def test_a_limit_that_is_waived_without_need_is_a_caution(state):
    done = run_hutch("doctor", "--json", "--set", "waive=memory", "--state-dir", state)
    found = findings(done)
    if found["cgroups"]["verdict"] == "PASS":
        assert found["waived"]["verdict"] == "CAUTION" and "memory" in found["waived"]["meaning"]


@contextlib.contextmanager
def user_namespace(ids):
    """The command that runs another one as root of a user namespace with so many ids."""
    holder = subprocess.Popen(["unshare", "--user", "sleep", "300"])
    try:
        ours = os.readlink("/proc/self/ns/user")
        place = pathlib.Path(f"/proc/{holder.pid}")
        wait_until(lambda: os.readlink(place / "ns/user") != ours, 5, "no user namespace")
        for name in ("uid_map", "gid_map"):
            (place / name).write_text(f"0 {FIRST_INSIDE} {ids}\n")
        enter = ["nsenter", "--user", "--target", str(holder.pid), "--setuid", "0", "--setgid", "0"]
        yield [*enter, "env", "HOME=/nonexistent"]
    finally:
        holder.kill()
        holder.wait()


@pytest.fixture
def state_inside():
    path = new_state_dir(images=False)
    os.chown(path, FIRST_INSIDE, FIRST_INSIDE)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.mark.as_root
def test_root_of_a_user_namespace_is_fit_and_serves(state_inside):
    with user_namespace(65536) as prefix:
        waive = {"waive": "memory,processes,cpus"}
        command = [*prefix[1:], settings.BINARY]
        done = run_hutch(*command, "doctor", "--json", "--set", "waive=memory,processes,cpus",
                         "--state-dir", state_inside, binary=prefix[0])  # fmt: skip
        assert done.returncode == 0, done.stdout
        assert "root of a user namespace" in findings(done)["privilege"]["meaning"]
        here = Daemon({**waive, "pool.target": 1, "pool.ceiling": 1}, state=state_inside,
                      prefix=prefix).start()  # fmt: skip
        try:
            assert here.internal.execute("import os; print(os.getuid())").ok()["stdout"] == "1000\n"
        finally:
            os.kill(int((state_inside / "server.pid").read_text()), signal.SIGTERM)
            here.wait()
            here.discard()


@pytest.mark.as_root
def test_root_of_a_user_namespace_with_few_ids_is_not(state_inside):
    with user_namespace(1000) as prefix:
        command = [*prefix[1:], settings.BINARY]
        where = ("--state-dir", state_inside)
        done = run_hutch(*command, "doctor", "--json", *where, binary=prefix[0])
        one = findings(done)["subordinate_ids"]
        assert one["verdict"] == "FAIL" and "has 1000 ids" in one["meaning"]
        started = run_hutch(*command, "serve", *where, binary=prefix[0])
        assert started.returncode == done.returncode != 0 and one["meaning"] in started.stderr


@pytest.mark.as_root
def test_too_few_namespaces_are_named_before_a_sandbox_fails(state_inside):
    with user_namespace(65536) as prefix:
        script = 'echo 4 > /proc/sys/user/max_net_namespaces && exec "$@"'
        command = [*prefix[1:], "sh", "-c", script, "sh", settings.BINARY]
        where = ("--set", "waive=memory,processes,cpus", "--state-dir", state_inside)
        done = run_hutch(*command, "doctor", "--json", *where, binary=prefix[0])
        one = findings(done)["namespace_limits"]
        assert one["verdict"] == "FAIL" and "user.max_net_namespaces (4)" in one["meaning"]
        assert one["remedy"] == "sysctl -w user.max_net_namespaces=15000"
        started = run_hutch(*command, "serve", *where, binary=prefix[0])
        assert started.returncode == done.returncode != 0 and one["meaning"] in started.stderr
