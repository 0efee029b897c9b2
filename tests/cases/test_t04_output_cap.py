"""The cap keeps head and tail, says how much fell, and nobody's memory grows with the output."""

import re
import threading

from harness import host
from harness.waiting import wait_until

MIB = 1 << 20

CODE = """
import sys
for i in range(3_000_000): print('line', i)
print('THE END'); sys.exit(3)
"""


def written():
    return sum(len(f"line {i}\n") for i in range(3_000_000)) + len("THE END\n")


def test_head_tail_and_the_exact_count(daemon):
    before = host.resident_bytes(daemon.pid)
    shown = daemon.execute(CODE, timeout_s=60).ok()
    assert host.resident_bytes(daemon.pid) - before < 8 * MIB
    assert shown["exit_code"] == 3
    text = shown["stdout"]
    assert text.startswith("line 0\nline 1\n") and text.endswith("line 2999999\nTHE END\n")
    assert len(text) < MIB + 200
    (dropped,) = [int(re.sub(r"\D", "", n)) for n in re.findall(r"(\d[\d,_]*) bytes", text)]
    mark = re.search(r"\n?[^\n]*bytes[^\n]*\n", text)
    kept = len(text[: mark.start()]) + len(text[mark.end() :])
    assert abs(kept + dropped - written()) <= 2
    assert shown["stdout_bytes"] == written()


def test_a_flood_does_not_grow_server_or_warden(daemon):
    sizes = {daemon.pid: [], daemon.warden_pid: []}
    done = threading.Event()

    def run():
        code = "import os\nos.execv('/usr/bin/yes', ['yes', 'x' * 1000])"
        assert daemon.execute(code, timeout_s=10)["exit_code"] == -1
        done.set()

    runner = threading.Thread(target=run)
    runner.start()
    wait_until(lambda: daemon.pool()["in_flight"] == 1, 5, "the run did not start")
    while not done.wait(0.25):
        for pid, seen in sizes.items():
            seen.append(host.resident_bytes(pid))
    runner.join()
    for pid, seen in sizes.items():
        assert len(seen) > 10
        assert max(seen) - min(seen[2:]) < 4 * MIB, (pid, seen)
