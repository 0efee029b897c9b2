"""The daemon's own life: draining, a second signal, crashes of either side, and the sweep after."""

import concurrent.futures
import http.client
import os
import signal
import socket
import time

import pytest
from harness import audit, host, ordinary_user, settings
from harness.daemon import Daemon
from harness.waiting import wait_until


def begin(here, code, count, **fields):
    """Runs that are under way: one future a client."""
    crew = concurrent.futures.ThreadPoolExecutor(count)
    futures = [crew.submit(here.execute, code, **fields) for _ in range(count)]
    wait_until(lambda: here.pool()["in_flight"] == count, 20, lambda: f"the pool is {here.pool()}")
    return futures


def living(facts):
    """Processes that can still do something; a dead one waits for its parent, the host's init."""
    return {pid: text for pid, text in host.processes(facts).items() if " Z uid " not in text}


def no_sandbox_process(facts, seconds):
    wait_until(lambda: not living(facts), seconds, lambda: f"still alive: {living(facts)}")


def test_the_pid_files(daemon):
    assert int((daemon.state / "server.pid").read_text()) == daemon.pid
    warden = int((daemon.state / "warden.pid").read_text())
    expected = ordinary_user.UID if settings.ROOTLESS else 0
    assert host.status_fields(warden)["Uid"].split()[0] == str(expected)


def test_the_server_has_no_privilege(daemon):
    fields = host.status_fields(daemon.pid)
    assert set(fields["Uid"].split()) != {"0"} and "0" not in fields["Uid"].split()
    assert "0" not in fields["Gid"].split() and "0" not in fields["Groups"].split()
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb", "CapBnd"):
        assert int(fields[name], 16) == 0, (name, fields[name])
    assert fields["NoNewPrivs"].strip() == "1"


def test_sigterm_drains(own_daemon):
    here = own_daemon(sets={"pool.target": 5, "pool.ceiling": 5})
    facts = here.facts()
    futures = begin(here, "import time; time.sleep(4); print('finished')", 5)
    here.terminate()
    refused = None
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline and refused is None:
        try:
            answer = here.execute("print('new')")
        except (ConnectionError, http.client.HTTPException):
            break
        if answer.status == 503:
            refused = answer
    assert refused is not None, "no new run was answered 503 while draining"
    assert refused.error
    assert here.internal.get("/readyz").status == 503
    for future in futures:
        assert future.result()["stdout"] == "finished\n"
    assert here.wait(10) == 0
    no_sandbox_process(facts, 1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_signal_at_rest_ends_at_once(own_daemon, number):
    here = own_daemon()
    started = time.monotonic()
    here.process.send_signal(number)
    assert here.wait(10) == 0 and time.monotonic() - started < 5 * settings.SLACK


def test_a_second_sigterm_stops_at_once(own_daemon):
    here = own_daemon()
    facts = here.facts()
    futures = begin(here, "import time; time.sleep(50)", 2, timeout_s=60)
    here.terminate()
    wait_until(lambda: here.internal.get("/readyz").status == 503, 5, "it did not drain")
    started = time.monotonic()
    here.terminate()
    here.wait(10)
    assert time.monotonic() - started < 5 * settings.SLACK
    no_sandbox_process(facts, 2)
    for future in futures:
        try:
            assert future.result().status != 200
        except (ConnectionError, http.client.HTTPException):
            pass


@pytest.mark.parametrize("number", [signal.SIGPIPE, signal.SIGUSR1, signal.SIGUSR2])
def test_other_signals_do_no_harm(own_daemon, number):
    here = own_daemon()
    here.process.send_signal(number)
    for _ in range(3):
        assert here.execute("print(1)")["stdout"] == "1\n"


def test_a_server_killed_in_the_middle_of_runs(own_daemon):
    here = own_daemon(sets={"pool.target": 4, "pool.ceiling": 4})
    facts, state = here.facts(), here.state
    futures = begin(here, "import time; time.sleep(50)", 4, timeout_s=60)
    here.kill()
    no_sandbox_process(facts, 5)
    for future in futures:
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            future.result()
    again = own_daemon(state=state)
    again.wait_warm()
    assert again.execute("print('back')")["stdout"] == "back\n"
    assert again.stop() == 0
    audit.check_gone(facts, host.mount_lines())


def test_a_warden_killed_in_the_middle_of_runs(own_daemon):
    """Without its privileged side the server cannot go on: it says so and ends, not with 0."""
    here = own_daemon()
    facts, state = here.facts(), here.state
    begin(here, "import time; time.sleep(50)", 2, timeout_s=60)
    os.kill(here.warden_pid, signal.SIGKILL)
    no_sandbox_process(facts, 5)
    assert here.wait(10) != 0
    assert "warden" in here.log_text()
    again = own_daemon(state=state)
    assert again.execute("print('back')")["stdout"] == "back\n"


def test_server_and_warden_killed_together(own_daemon):
    """Nobody is left to tidy up: sandboxes end by themselves, the next start sweeps the rest."""
    here = own_daemon()
    facts, state = here.facts(), here.state
    begin(here, "import time; time.sleep(50)", 2, timeout_s=60)
    os.kill(here.pid, signal.SIGSTOP)
    os.kill(here.warden_pid, signal.SIGKILL)
    here.kill()
    no_sandbox_process(facts, 5)
    again = own_daemon(state=state)
    assert again.execute("print('back')")["stdout"] == "back\n"
    later = again.facts()
    assert again.stop() == 0
    audit.check_gone(later, host.mount_lines())
    audit.check_gone(facts, host.mount_lines())


@pytest.mark.parametrize("name", ["launcher_pid", "anchor_pid"])
def test_a_lost_part_of_the_sandbox_side(own_daemon, name):
    """It heals, or the server ends and says so; a run never gets a success it did not earn."""
    here = own_daemon()
    facts, state = here.facts(), here.state
    os.kill(here.doctor()[name], signal.SIGKILL)

    def heals_or_ends():
        if not here.alive():
            return True
        try:
            return here.execute("print('alive')").status == 200
        except (ConnectionError, http.client.HTTPException):
            return False

    wait_until(heals_or_ends, 15, lambda: here.log_text()[-2000:])
    if not here.alive():
        assert here.process.returncode == 70, here.log_text()[-2000:]
        no_sandbox_process(facts, 5)
        again = own_daemon(state=state)
        assert again.execute("print('back')")["stdout"] == "back\n"


def test_a_killed_sandbox_process_is_one_run_s_loss(own_daemon):
    """Whatever the host's operator kills in a sandbox, that run alone is lost."""
    here = own_daemon()
    code = "import os\nos.execv('/bin/sleep', ['sleep-SBXMARK-victim', '30'])"
    (future,) = begin(here, code, 1, timeout_s=60)
    wait_until(host.marked_processes, 5, "the program did not start")
    (victim,) = host.marked_processes()
    assert victim in host.processes(here.facts())
    os.kill(victim, signal.SIGKILL)
    answer = future.result()
    assert answer["exit_code"] == 137 and answer["end"]["cause"] == "signaled"
    assert here.execute("print(1)")["stdout"] == "1\n"


def test_a_shortage_of_descriptors_passes(own_daemon):
    """With no descriptor left nothing is taken, nothing spins, and all is well afterwards."""
    here = own_daemon(prefix=["prlimit", "--nofile=128:128"])
    address = (here.internal.host, here.internal.port)
    links = [socket.create_connection(address, 5) for _ in range(160)]
    before = sum(host.cpu_seconds(pid) for pid in (here.pid, here.warden_pid))
    started = time.monotonic()
    wait_until(lambda: time.monotonic() - started > 2, 5, "")
    used = sum(host.cpu_seconds(pid) for pid in (here.pid, here.warden_pid)) - before
    assert used < 0.5 * settings.SLACK, "it spins"
    for link in links:
        link.close()

    def answers():
        try:
            return here.execute("print(1)").status == 200
        except OSError:
            return False

    wait_until(answers, 15, "it does not recover")
    here.wait_warm()


def test_killed_again_and_again(own_daemon):
    """Ten crashes at ten moments of a start and of a burst; each next start finds order."""
    state, facts = None, None
    first = own_daemon()
    state, facts = first.state, first.facts()
    first.kill()
    for turn in range(6):
        here = Daemon(state=state).spawn()
        try:
            time.sleep(0.1 + 0.15 * turn)
        finally:
            here.kill()
            here.discard()
        no_sandbox_process(facts, 5)
    last = own_daemon(state=state)
    assert last.execute("print(1)")["stdout"] == "1\n"


def test_three_starts_at_once_in_one_directory(own_daemon):
    first = own_daemon()
    state, facts = first.state, first.facts()
    first.kill()
    no_sandbox_process(facts, 5)
    rivals = [Daemon(state=state).spawn() for _ in range(3)]
    try:
        wait_until(
            lambda: sum(rival.alive() for rival in rivals) == 1,
            20,
            lambda: "\n".join(rival.log_text() for rival in rivals),
        )
        (winner,) = [rival for rival in rivals if rival.alive()]
        assert "hutch ready" in winner.ready_line()
        assert {r.process.returncode for r in rivals if r is not winner} == {73}
        assert winner.stop() == 0
    finally:
        for rival in rivals:
            rival.kill()
            rival.discard()


def test_two_daemons_with_two_state_directories(own_daemon):
    first, second = own_daemon(), own_daemon()
    assert first.execute("print(1)")["stdout"] == second.execute("print(1)")["stdout"] == "1\n"
    both = [here.facts() for here in (first, second)]
    low, high = sorted(both, key=lambda facts: facts.uid_first)
    assert low.uid_first + low.uid_count <= high.uid_first, "the uid ranges overlap"
    assert not set(low.cgroup_prefixes) & set(high.cgroup_prefixes)


def test_a_request_is_found_in_the_log_by_its_id(own_daemon):
    here = own_daemon()
    here.internal.request(
        "POST", "/v1/execute", {"code": "print(1)"}, headers={"X-Request-Id": "find-me.1"}
    ).ok()
    assert here.stop() == 0
    (record,) = [r for r in here.log_records() if r.get("request_id") == "find-me.1"]
    assert record["route"] == "/v1/execute" and record["status"] == 200


def test_the_log_is_json_and_holds_no_code(own_daemon):
    here = own_daemon()
    secret = "value-" + settings.CANARY[5:]
    here.execute(f"print({secret!r})").ok()
    here.execute(f"raise ValueError({secret!r})").ok()
    here.internal.request("POST", "/v1/execute", b'{"code": "' + secret.encode())
    assert here.stop() == 0
    records = here.log_records()
    assert records and all({"time", "level", "event"} <= set(record) for record in records)
    assert secret not in here.log_text() and settings.CANARY not in here.log_text()
