"""A fork storm is bounded, is named, and does not slow the others down."""

import statistics
import threading

import pytest
from harness import settings

STORM = (
    "import subprocess\nsubprocess.run(['bash', '-c', ':(){ :|:& };:; wait'])\n"
    "import time; time.sleep(60)"
)


def latencies(daemon, count):
    return sorted(daemon.execute("print(1)").seconds for _ in range(count))


def test_the_storm_ends_in_time(daemon):
    answer = daemon.execute(STORM, timeout_s=5)
    shown = answer.ok()
    assert answer.seconds < 6 * settings.SLACK
    cause = shown.get("end", {}).get("cause", "timeout" if shown["exit_code"] == -1 else "exited")
    assert cause in ("processes", "timeout", "exited"), shown


def test_a_pool_of_large_workers(daemon):
    code = "import multiprocessing as m\nm.Pool(64).map(bytearray,[50_000_000]*64)"
    answer = daemon.execute(code, timeout_s=5)
    shown = answer.ok()
    assert answer.seconds < 6 * settings.SLACK
    cause = shown.get("end", {}).get("cause", "timeout" if shown["exit_code"] == -1 else "exited")
    assert cause in ("processes", "timeout", "exited", "memory"), shown


@pytest.mark.slow
def test_the_others_stay_quick(daemon):
    """Compared with a neighbour that computes: two cores are shared in both cases."""
    calm = "import time\nend = time.monotonic() + 6\nwhile time.monotonic() < end: pass"
    medians = []
    for neighbour in (calm, STORM):
        beside = threading.Thread(target=daemon.execute, args=(neighbour,), kwargs={"timeout_s": 7})
        beside.start()
        medians.append(statistics.median(latencies(daemon, 12)))
        beside.join()
        daemon.wait_warm()
    assert medians[1] < 2 * settings.SLACK * medians[0] + 0.02, medians
