"""The step loop: each step of making a sandbox fails in turn; it is named and nothing is left."""

import json
import re

import pytest
from harness import host, settings
from harness.daemon import StartFailed
from harness.waiting import wait_until

# One of each process and kind: the whole list is gone through beside the warden itself, in
# tests/kernel/step_loop_test.cc; here it is whether the server says what the warden told.
SANDBOX_STEPS = [
    "channel_create",
    "cgroup_attach",
    "network_create",
    "init_clone",
    "scratch_mount",
    "init_filter",
    "program_join",
    "program_exec",
]
START_STEPS = ["uid_range", "image_mount", "zone_proc", "launcher_start"]


def test_the_steps_are_of_the_closed_list():
    text = (settings.ROOT / "src" / "base" / "step.h").read_text()
    names = re.findall(r"^  (\w+)(?: = 0)?,$", text, re.MULTILINE)
    assert set(SANDBOX_STEPS + START_STEPS) <= set(names)


pytestmark = pytest.mark.failpoints


@pytest.mark.parametrize("step", SANDBOX_STEPS)
def test_a_sandbox_that_fails_at(own_daemon, step):
    """The server is up with an empty pool and says which step fails; a run gets the 503."""
    here = own_daemon(testing=True, sets={"testing.fail_step": step, "pool.wait_ms": 200})
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


@pytest.mark.parametrize("step", START_STEPS)
def test_a_start_that_fails_at(own_daemon, step):
    mounts = host.mount_lines()
    with pytest.raises(StartFailed) as failure:
        own_daemon(testing=True, sets={"testing.fail_step": step, "pool.wait_ms": 200})
    assert failure.value.status not in (0, None), failure.value
    assert step in failure.value.log, failure.value.log[-2000:]
    assert not host.mount_lines() - mounts
