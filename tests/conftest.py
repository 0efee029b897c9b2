"""Fixtures of every test that talks to a real daemon. Each such test ends with an audit."""

import os
import pathlib

import pytest
from harness import audit, host, settings
from harness.daemon import Daemon


def pytest_configure(config):
    for line in (
        "control: runs an attack on the bare host, to prove that it can succeed somewhere",
        "cgroup_limits: about limits that an ordinary user here has no control group for",
        "as_root: about what only a server that root starts does",
        "failpoints: needs the binary with failpoints compiled in",
        "slow: takes more than half a minute",
    ):
        config.addinivalue_line("markers", line)


def pytest_collection_modifyitems(items):
    """Tests that say so run only where root serves."""
    if not settings.ROOTLESS:
        return
    for item in items:
        for mark in ("cgroup_limits", "as_root"):
            if item.get_closest_marker(mark):
                item.add_marker(pytest.mark.skip(reason=f"{mark}: not for an ordinary user"))


class _Kept:
    """One daemon for many tests; replaced as soon as a test leaves it in another state."""

    def __init__(self):
        self.daemon = None

    def get(self):
        if self.daemon is None or not self.daemon.alive():
            self.mounts = host.mount_lines()
            self.daemon = Daemon().start()
            self.base = audit.settle(self.daemon)
        return self.daemon

    def end(self):
        daemon, self.daemon = self.daemon, None
        if daemon is None:
            return
        facts = daemon.facts()
        try:
            assert daemon.stop() == 0, daemon.log_text()[-3000:]
            audit.check_gone(facts, self.mounts)
        finally:
            daemon.kill()
            daemon.discard()


@pytest.fixture(scope="session")
def kept_daemon():
    if not os.path.exists(settings.BINARY):
        pytest.fail(f"there is no {settings.BINARY}: build it with ./dev build")
    kept = _Kept()
    yield kept
    kept.end()


@pytest.fixture
def daemon(kept_daemon):
    """The daemon with default settings that the tests share; audited after the test."""
    here = kept_daemon.get()
    pid = here.pid
    yield here
    try:
        assert here.pid == pid
        audit.check(here, kept_daemon.base)
    except BaseException:
        # The next test starts from a daemon that is in order, and this one is to blame alone.
        try:
            kept_daemon.end()
        except BaseException as second:
            print(f"and the daemon did not end well: {second}")
        raise


@pytest.fixture
def own_daemon():
    """A function that starts a daemon for this test alone: own_daemon(sets={...}, testing=...).

    At the end each one still alive is stopped by SIGTERM, has to end with status 0, and has to
    leave nothing behind.
    """
    mounts = host.mount_lines()
    started = []

    def start(**options):
        if options.get("testing") and not os.path.exists(settings.TESTING_BINARY):
            pytest.skip(f"there is no {settings.TESTING_BINARY}")
        here = Daemon(**options)
        started.append(here)
        return here.start()

    yield start
    try:
        for here in started:
            if here.alive():
                facts = here.facts()
                assert here.stop() == 0, here.log_text()[-3000:]
                audit.check_gone(facts, mounts)
    finally:
        for here in started:
            here.kill()
            here.discard()


@pytest.fixture(scope="session")
def host_canary():
    """A readable file of the host whose content must never come out of a sandbox."""
    path = pathlib.Path("/etc/sbx-canary")
    path.write_text(settings.CANARY + "\n")
    path.chmod(0o644)
    yield path
    # Another session may have put its own there, and taken it away.
    path.unlink(missing_ok=True)
