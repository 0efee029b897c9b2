"""The step loop: each step of making a sandbox fails in turn; it is named and nothing is left."""

import json
import re

import pytest
from harness import host, settings
from harness.daemon import StartFailed
from harness.waiting import wait_until

ENDING = {
    "none",
    "count_",
    "files_in",
    "run_start",
    "run_wait",
    "files_out",
    "kill_tree",
    "reap_program",
    "reap_init",
    "cgroup_remove",
}


def setup_steps():
    """The names from channel_create to program_ready, in the order of the closed list."""
    text = (settings.ROOT / "src" / "base" / "step.h").read_text()
    names = re.findall(r"^  (\w+)(?: = 0)?,$", text, re.MULTILINE)
    return [name for name in names[names.index("channel_create") :] if name not in ENDING]


def warden_steps():
    """The names of what the warden does once, before there is any sandbox."""
    text = (settings.ROOT / "src" / "base" / "step.h").read_text()
    names = re.findall(r"^  (\w+)(?: = 0)?,$", text, re.MULTILINE)
    return names[names.index("state_lock") : names.index("channel_create")]


pytestmark = pytest.mark.failpoints


@pytest.mark.parametrize("step", setup_steps())
def test_a_sandbox_that_fails_at(own_daemon, step):
    """The server is up with an empty pool and says which step fails; a run gets the 503."""
    here = own_daemon(testing=True, sets={"testing.fail_step": step, "pool.wait_ms": 1500})
    assert here.testing
    wait_until(lambda: f'"{step}"' in here.log_text(), 10, lambda: here.log_text()[-2000:])
    answer = here.execute("print(1)")
    assert answer.status == 503 and answer.headers["Retry-After"]
    assert answer.error == "no sandbox is available right now - try again shortly"
    now = here.pool()
    assert now["warm"] == 0 and now["in_flight"] == 0 and now["created_total"] == 0
    steady = len(host.cgroup_dirs(here.facts()))
    sandboxes = [text for text in host.processes(here.facts()).values() if "python" in text]
    assert not sandboxes and steady <= 16
    for record in here.log_records():
        json.dumps(record)


@pytest.mark.parametrize("step", warden_steps())
def test_a_start_that_fails_at(own_daemon, step):
    mounts = host.mount_lines()
    try:
        here = own_daemon(testing=True, sets={"testing.fail_step": step, "pool.wait_ms": 1500})
    except StartFailed as failure:
        assert failure.status not in (0, None), failure
        assert step in failure.log, failure.log[-2000:]
    else:
        # What is done again for each try fails each try, with the server up.
        wait_until(lambda: f'"{step}"' in here.log_text(), 10, lambda: here.log_text()[-2000:])
    assert not host.mount_lines() - mounts
