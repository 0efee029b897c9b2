"""`hutch plan`: what it shows, to whom, and that it does nothing."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest
import strace_log
from harness import settings
from harness.daemon import new_state_dir, run_hutch

AS_NOBODY = {
    "user": 65534,
    "group": 65534,
    "extra_groups": [],
    "env": {"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
}
MAKERS_OF_PROCESSES = {"clone", "clone3", "fork", "vfork"}
CHANGERS = {
    "mount", "umount2", "pivot_root", "fsopen", "fsmount", "move_mount", "open_tree",
    "mount_setattr", "unshare", "setns", "chroot", "mkdir", "mkdirat", "rmdir", "unlink",
    "unlinkat", "rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat",
    "mknod", "mknodat", "chmod", "fchmod", "fchmodat", "chown", "fchown", "lchown", "fchownat",
    "truncate", "ftruncate", "utimensat", "setxattr", "kill", "tgkill", "pidfd_send_signal",
    "bind", "listen", "setuid", "setgid", "setresuid", "setresgid", "setgroups", "capset",
    "seccomp", "setrlimit", "sethostname", "ptrace", "bpf", "flock", "sched_setaffinity",
}  # fmt: skip


@pytest.fixture
def empty_state():
    path = new_state_dir(images=False)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def plan(*arguments, **more):
    done = run_hutch("plan", "--json", *arguments, **more)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return json.loads(done.stdout)


def traced(*command):
    log = pathlib.Path(tempfile.mkstemp(prefix="hutch-strace-")[1])
    done = subprocess.run(
        ["strace", "-f", "-qq", "-o", str(log), settings.BINARY, *map(str, command)],
        capture_output=True,
        text=True,
        timeout=60 * settings.SLACK,
    )
    processes = strace_log.read(log)
    log.unlink()
    return done, processes


@pytest.mark.parametrize("command", [["plan", "--json"], ["plan"], ["doctor"]])
def test_it_changes_nothing(command, empty_state):
    done, processes = traced(*command, "--state-dir", empty_state)
    assert done.stdout
    (calls,) = processes.values()
    for call in calls[1:]:
        assert call.name not in CHANGERS | MAKERS_OF_PROCESSES | {"execve"}, call
        if call.name in ("open", "openat", "creat"):
            assert "O_RDONLY" in call.arguments and "O_CREAT" not in call.arguments, call
        if call.name in ("write", "writev", "pwrite64", "sendto", "sendmsg"):
            assert call.arguments.startswith(("1, ", "2, ")), call
        if call.name == "keyctl":
            assert call.arguments.startswith("KEYCTL_GET_KEYRING_ID"), call
    assert os.listdir(empty_state) == []


@pytest.mark.as_root
def test_without_an_image_it_says_what_is_assumed(empty_state):
    found = plan("--state-dir", empty_state)
    assert found["image"]["digest"] == ""
    assert "There is no image python in" in found["assumed"][0]
    assert found["execute"][0]["source"].startswith("/usr/bin/python3")


def test_without_a_recipe_either(empty_state):
    found = plan("--state-dir", empty_state, "--set", "image=other")
    assert "and no recipe" in found["assumed"][0]
    assert found["execute"][0]["source"] == "/usr/bin/python3"


@pytest.mark.as_root
def test_for_an_ordinary_user(empty_state):
    os.chown(empty_state, 65534, 65534)
    found = plan("--state-dir", empty_state, **AS_NOBODY)
    assert found["rootless"] is True and found["fit"] is False
    assert found["id_maps"]["server"][0] == {"inside": 0, "outside": 65534, "count": 1}
    assert any("has no subordinate ids" in text for text in found["assumed"])
    text = run_hutch("plan", "--state-dir", empty_state, **AS_NOBODY).stdout
    assert "without root" in text and "FAIL     subordinate_ids" in text


@pytest.mark.as_root
def test_for_root():
    state = new_state_dir()
    try:
        found = plan("--state-dir", state)
    finally:
        shutil.rmtree(state, ignore_errors=True)
    assert found["rootless"] is False and found["fit"] is True
    assert found["image"]["path"].startswith(str(state)) and len(found["image"]["digest"]) == 64


@pytest.mark.as_root
def test_a_waived_limit_that_is_not_held_is_said(empty_state):
    waive = ("--set", "waive=memory,processes,cpus")
    os.chown(empty_state, 65534, 65534)
    found = plan("--state-dir", empty_state, *waive, **AS_NOBODY)
    assert found["waived"] == ["memory", "processes", "cpus"]
    verdicts = {one["name"]: one["verdict"] for one in found["host"]}
    if found["not_held"]:
        assert verdicts["cgroups"] == "CAUTION" and verdicts["waived"] in ("PASS", "CAUTION")
    if "processes" in found["not_held"]:
        nproc = [step["numbers"] for step in found["program"] if step["do"] == "set_rlimit"][-1]
        assert nproc == [6, 128, 128]
        assert not any(one["file"].startswith("pids") for one in found["cgroup_files"])


def test_settings_show(empty_state):
    sets = ["limits.memory_bytes=64MiB", "limits.disk_bytes=1MiB", "limits.processes=9",
            "limits.open_files=65", "limits.cpus=0.5"]  # fmt: skip
    arguments = [word for one in sets for word in ("--set", one)]
    found = plan("--state-dir", empty_state, *arguments)
    assert found["cgroup"] == {
        "cpu_period_us": 100000,
        "cpu_quota_us": 50000,
        "memory_bytes": 64 << 20,
        "processes": 10,
    }
    limits = [step["numbers"] for step in found["program"] if step["do"] == "set_rlimit"]
    assert [7, 65, 65] in limits
    assert any("size=1048576," in step.get("source", "") for step in found["init"])


def test_a_setting_that_makes_no_sense_is_refused():
    done = run_hutch("plan", "--set", "limits.processes=0")
    assert done.returncode == 64 and done.stdout == "" and "limits.processes" in done.stderr


def test_doctor_start_and_plan_say_the_same(empty_state):
    said = json.loads(run_hutch("doctor", "--json", "--state-dir", empty_state).stdout)
    fleeting = ("memory",)  # its sentence counts what is free right now
    for one, other in zip(said["findings"], plan("--state-dir", empty_state)["host"], strict=True):
        assert one["name"] == other["name"] and one["verdict"] == other["verdict"]
        if one["name"] not in fleeting:
            assert one == other
