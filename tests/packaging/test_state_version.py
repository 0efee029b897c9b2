"""An upgrade keeps the state directory, and a downgrade does not spoil it."""

import pathlib
import shutil

import pytest
from harness.daemon import Daemon, new_state_dir, run_hutch

STATE = 73
NEWEST = 1  # what this program writes


@pytest.fixture
def state():
    path = new_state_dir()
    yield path
    shutil.rmtree(path, ignore_errors=True)


def test_a_directory_of_an_older_program_is_taken_over(state):
    version = pathlib.Path(state, "version")
    assert not version.exists()
    here = Daemon(state=state).start()
    try:
        assert version.read_text() == f"{NEWEST}\n"
        assert here.stop() == 0
    finally:
        here.kill()
        here.discard()


@pytest.mark.parametrize(
    "command",
    ["serve", "run --local -c 1", "image build python", "image ls", "image path python",
     "image prune"],
)
def test_a_newer_directory_is_refused(state, command):
    pathlib.Path(state, "version").write_text(f"{NEWEST + 1}\n")
    before = sorted(pathlib.Path(state).rglob("*"))
    done = run_hutch(*command.split(), "--state-dir", state)
    # `run` ends as the program does, and has one code for whatever kept it from running.
    expected = 125 if command.startswith("run") else STATE
    assert (done.returncode, done.stdout) == (expected, ""), done
    line = done.stderr.splitlines()[-1]
    assert line.startswith(f"hutch: the state directory {state} has version {NEWEST + 1}, "), line
    assert f"reads version {NEWEST}: install the newer hutch" in line
    left = sorted(pathlib.Path(state).rglob("*"))
    assert [path for path in left if path.name != "server.lock"] == before
