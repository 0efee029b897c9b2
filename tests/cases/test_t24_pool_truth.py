"""The pool tells the truth under a burst, and when sandboxes cannot be made."""

import concurrent.futures
import threading
import time

import pytest
from harness import settings
from harness.waiting import wait_until

BUSY = "no sandbox is available right now - try again shortly"


def test_fifty_at_once(own_daemon):
    # How fast the pool refills is the machine's; on a slow one the last of fifty waits longer.
    daemon = own_daemon(sets={"pool.wait_ms": 120_000})
    before = daemon.pool()
    seen, stop = [], threading.Event()

    def watch():
        while not stop.wait(0.02):
            seen.append(daemon.pool())

    watcher = threading.Thread(target=watch)
    watcher.start()
    with concurrent.futures.ThreadPoolExecutor(50) as crew:
        answers = list(crew.map(lambda turn: daemon.execute(f"print({turn})"), range(50)))
    stop.set()
    watcher.join()
    assert [answer["stdout"] for answer in answers] == [f"{turn}\n" for turn in range(50)]
    assert len({answer["sandbox_id"] for answer in answers}) == 50
    daemon.wait_warm()
    after = daemon.pool()
    assert after["created_total"] == before["created_total"] + 50
    assert after["warm"] == 3 and after["in_flight"] == 0
    for now in seen:
        assert now["in_flight"] >= 0 and 0 <= now["warm"] <= 3
        assert now["created_total"] >= before["created_total"]


@pytest.fixture
def broken(own_daemon):
    """A daemon in which no sandbox can be made."""
    return own_daemon(testing=True, sets={"testing.fail_step": "scratch_mount"})


@pytest.mark.slow
@pytest.mark.failpoints
def test_the_503_after_thirty_seconds(broken):
    with concurrent.futures.ThreadPoolExecutor(3) as crew:
        for answer in crew.map(lambda _: broken.execute("print(1)"), range(3)):
            assert answer.status == 503 and answer.error == BUSY
            assert 30.0 <= answer.seconds <= 30.0 + 0.5 * settings.SLACK
            assert int(answer.headers["Retry-After"]) >= 1
    assert broken.pool()["in_flight"] == 0 and broken.pool()["created_total"] == 0


@pytest.mark.failpoints
def test_leaving_during_the_wait_frees_the_place(own_daemon):
    here = own_daemon(testing=True, sets={"testing.fail_step": "scratch_mount", "pool.line_max": 1})
    first = here.internal.begin_execute("print(1)")
    wait_until(lambda: here.execute("print(2)").status == 503, 5, "the line did not fill")
    first.close()

    # The place is free when the next one waits instead of being refused at once.
    def waits():
        link = here.internal.begin_execute("print(3)")
        link.settimeout(0.5)
        started = time.monotonic()
        try:
            link.recv(1)
        except TimeoutError:
            return True
        finally:
            link.close()
        return time.monotonic() - started > 0.4

    wait_until(waits, 5, "the place of the client that left is still taken")
