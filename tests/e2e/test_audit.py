"""The audit sees what a daemon could leave: each kind of thing is put there by hand."""

import contextlib
import os
import socket
import subprocess
import sys

import pytest
from harness import audit, host, settings

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@contextlib.contextmanager
def process(*arguments, **more):
    child = subprocess.Popen([*SLEEP, *arguments], **more)
    try:
        yield
    finally:
        child.kill()
        child.wait()


@contextlib.contextmanager
def cgroup(prefix):
    os.mkdir(f"{prefix}/left" if os.path.isdir(prefix) else f"{prefix}-left")
    try:
        yield
    finally:
        os.rmdir(f"{prefix}/left" if os.path.isdir(f"{prefix}/left") else f"{prefix}-left")


@contextlib.contextmanager
def mount(place):
    subprocess.run(["mount", "-t", "tmpfs", "left", place], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", place], check=True)


@contextlib.contextmanager
def connection(daemon):
    with socket.create_connection((daemon.internal.host, daemon.internal.port), 5):
        yield


@pytest.mark.parametrize("kind", ["process", "marked", "cgroup", "mount", "connection"])
def test_it_finds(daemon, tmp_path, monkeypatch, kind):
    base = audit.settle(daemon)
    facts = daemon.facts()
    if kind == "cgroup" and not facts.cgroup_prefixes:
        pytest.skip("there is no control group of this daemon's")
    left, words = {
        "process": lambda: (process(user=facts.uid_first + 7), "processes:"),
        "marked": lambda: (process(settings.MARK), "marked processes"),
        "cgroup": lambda: (cgroup(facts.cgroup_prefixes[0]), "cgroups:"),
        "mount": lambda: (mount(tmp_path), "mount on the host"),
        "connection": lambda: (connection(daemon), "server descriptors:"),
    }[kind]()
    audit.check(daemon, base)
    monkeypatch.setattr(audit, "_SETTLE_S", 1)
    with left, pytest.raises(AssertionError, match=words):
        daemon.pool()
        audit.check(daemon, base)
    monkeypatch.undo()
    audit.check(daemon, base)


def test_it_finds_what_an_ended_daemon_left(own_daemon):
    here = own_daemon()
    facts, mounts = here.facts(), host.mount_lines()
    assert here.stop() == 0
    audit.check_gone(facts, mounts)
    with process(user=facts.uid_first + 7), pytest.raises(AssertionError, match="process"):
        audit.check_gone(facts, mounts, seconds=0.5)
