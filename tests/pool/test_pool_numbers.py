"""GET /v1/pool: four numbers, and that each means exactly what is documented."""

import concurrent.futures
import os
import signal
import threading
import time

from harness import host, settings
from harness.waiting import wait_until

BUSY = "no sandbox is available right now - try again shortly"


def crew(count):
    return concurrent.futures.ThreadPoolExecutor(count)


class Watcher:
    """Polls the pool until it is stopped, and keeps every distinct answer."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.seen = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopped.set()
        self._thread.join()

    def _run(self):
        while not self._stopped.wait(0.02):
            now = self.daemon.pool()
            if not self.seen or self.seen[-1] != now:
                self.seen.append(now)


def test_the_four_numbers_and_no_other_key(daemon):
    answer = daemon.internal.get("/v1/pool")
    assert list(answer.ok()) == ["warm", "target", "in_flight", "created_total"]
    assert all(type(value) is int for value in answer.json.values())
    assert answer.json["warm"] == answer.json["target"] == 3 and answer.json["in_flight"] == 0
    assert answer.headers["Content-Type"].split(";")[0] == "application/json"


def test_a_fresh_daemon_is_ready_with_a_full_pool(own_daemon):
    here = own_daemon()
    assert here.pool() == {"warm": 3, "target": 3, "in_flight": 0, "created_total": 3}
    here.execute("print(1)").ok()
    wait_until(
        lambda: here.pool() == {"warm": 3, "target": 3, "in_flight": 0, "created_total": 4},
        10,
        lambda: str(here.pool()),
    )


def test_created_rises_by_one_for_each_run(daemon):
    before = daemon.pool()["created_total"]
    for _ in range(5):
        daemon.execute("print(1)").ok()
    daemon.wait_warm()
    assert daemon.pool()["created_total"] == before + 5


def test_refused_requests_use_no_sandbox(daemon):
    before = daemon.pool()
    for body in ({}, {"code": "1", "timeout_s": 99}, b"{"):
        assert daemon.internal.request("POST", "/v1/execute", body).status == 400
    assert daemon.pool() == before


def test_in_flight_counts_runs(daemon):
    with crew(2) as workers:
        runs = [workers.submit(daemon.execute, "import time; time.sleep(1.5)") for _ in range(2)]
        wait_until(lambda: daemon.pool()["in_flight"] == 2, 5, lambda: str(daemon.pool()))
        assert daemon.pool()["warm"] <= 3
        for run in runs:
            run.result().ok()
    wait_until(lambda: daemon.pool()["in_flight"] == 0, 2, lambda: str(daemon.pool()))


def test_the_target_is_a_setting(own_daemon):
    here = own_daemon(sets={"pool.target": 1, "pool.ceiling": 1})
    assert here.pool()["target"] == 1 and here.pool()["warm"] == 1
    assert here.execute("print(1)")["stdout"] == "1\n"


def test_thirty_two_at_once(own_daemon):
    # The pace of refilling is the machine's, so the wait is long enough for a slow one.
    daemon = own_daemon(sets={"pool.wait_ms": 120_000})
    code = "import time; time.sleep(0.3); print('ok')"
    with Watcher(daemon) as watcher, crew(32) as workers:
        answers = list(workers.map(lambda _: daemon.execute(code), range(32)))
    assert all(answer["stdout"] == "ok\n" for answer in answers)
    assert len({answer["sandbox_id"] for answer in answers}) == 32
    for now in watcher.seen:
        assert 0 <= now["warm"] <= 3 and 0 <= now["in_flight"] <= 32


def test_two_hundred_at_once(daemon):
    before = daemon.pool()["created_total"]
    with crew(200) as workers:
        answers = list(workers.map(lambda turn: daemon.execute(f"print({turn})"), range(200)))
    good = [answer for answer in answers if answer.status == 200]
    for answer in answers:
        if answer.status != 200:
            assert answer.status == 503 and answer.error == BUSY
            assert answer.seconds >= 29
    daemon.wait_warm()
    assert daemon.pool()["created_total"] == before + len(good)


def test_requests_are_served_in_the_order_they_came(own_daemon):
    here = own_daemon(sets={"pool.target": 1, "pool.ceiling": 1, "runs.max": 1})
    finished, guard = [], threading.Lock()

    def run(turn):
        here.execute("import time; time.sleep(0.2)").ok()
        with guard:
            finished.append(turn)

    threads = []
    for turn in range(6):
        threads.append(threading.Thread(target=run, args=(turn,)))
        threads[-1].start()
        # The next one comes when this one has arrived: it runs, or it stands in line.
        wait_until(lambda: here.metric("hutch_pool_waiting") >= turn, 5, "it did not get in line")
    for thread in threads:
        thread.join()
    assert finished == sorted(finished)


def test_no_more_runs_than_the_most(own_daemon):
    here = own_daemon(sets={"runs.max": 2})
    with Watcher(here) as watcher, crew(8) as workers:
        answers = list(workers.map(lambda _: here.execute("import time; time.sleep(.3)"), range(8)))
    assert all(answer.status == 200 for answer in answers)
    assert max(now["in_flight"] for now in watcher.seen) == 2


def test_a_short_wait_gives_the_503(own_daemon):
    here = own_daemon(sets={"runs.max": 1, "pool.wait_ms": 700})
    with crew(1) as workers:
        long = workers.submit(here.execute, "import time; time.sleep(4)")
        wait_until(lambda: here.pool()["in_flight"] == 1, 5, "the run did not start")
        answer = here.execute("print(1)")
        assert answer.status == 503 and answer.error == BUSY
        assert int(answer.headers["Retry-After"]) >= 1
        assert 0.7 <= answer.seconds < 0.7 + 0.5 * settings.SLACK
        long.result().ok()


def test_the_line_has_an_end(own_daemon):
    here = own_daemon(sets={"runs.max": 1, "pool.line_max": 2})
    with crew(4) as workers:
        runs = [workers.submit(here.execute, "import time; time.sleep(2)") for _ in range(4)]
        answers = [run.result() for run in runs]
    refused = [answer for answer in answers if answer.status == 503]
    assert len(refused) == 1 and refused[0].seconds < 1 * settings.SLACK
    assert refused[0].error == BUSY and refused[0].headers["Retry-After"]


def test_a_client_that_leaves_frees_its_place_in_line(own_daemon):
    here = own_daemon(sets={"runs.max": 1, "pool.line_max": 1})
    running = here.internal.begin_execute("import time; time.sleep(3)")
    wait_until(lambda: here.pool()["in_flight"] == 1, 5, "the run did not start")
    waiting = here.internal.begin_execute("print('never')")
    wait_until(lambda: here.execute("1").status == 503, 5, "the line did not fill")
    created = here.pool()["created_total"]
    waiting.close()
    answer = here.execute("print('in its place')")
    assert answer["stdout"] == "in its place\n"
    running.close()
    here.wait_warm()
    assert here.pool()["created_total"] == created + 2


def warm_programs(here):
    """The interpreters that wait for code: python processes of the uid range."""
    return [pid for pid, text in host.processes(here.facts()).items() if "python" in text]


def test_a_dead_warm_sandbox_is_never_handed_out(own_daemon):
    here = own_daemon()
    programs = warm_programs(here)
    assert len(programs) >= 3, programs
    for pid in programs:
        os.kill(pid, signal.SIGKILL)
    for _ in range(6):
        assert here.execute("print('alive')")["stdout"] == "alive\n"
    here.wait_warm()
    assert not set(programs) & set(warm_programs(here))


def test_a_dead_init_is_never_handed_out(own_daemon):
    here = own_daemon()
    said = here.doctor()
    victims = [
        pid
        for pid in host.processes(here.facts())
        if host.status_fields(pid).get("NSpid", "").split()[-1:] == ["1"]
        and pid not in (said["anchor_pid"], said["launcher_pid"])
    ]
    assert victims, "no init was found"
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    for _ in range(6):
        assert here.execute("print('alive')")["stdout"] == "alive\n"


def test_a_pool_that_cannot_be_filled_does_not_spin(own_daemon):
    here = own_daemon(testing=True, sets={"testing.fail_step": "scratch_mount"})

    def used():
        return sum(host.cpu_seconds(pid) for pid in (here.pid, here.warden_pid))

    started, before = time.monotonic(), used()
    wait_until(lambda: time.monotonic() - started > 6, 10, "")
    assert (used() - before) / 6 < 0.05 * settings.SLACK
