"""A run that is killed for its memory says so, and an ordinary MemoryError stays ordinary."""

import pytest

pytestmark = pytest.mark.cgroup_limits

MIB = 1 << 20


def test_the_kill_is_named(daemon):
    code = "b=bytearray(3*1024**3)\nfor i in range(0,len(b),4096): b[i]=1"
    shown = daemon.execute(code).ok()
    assert shown["exit_code"] == 137
    assert shown["end"]["cause"] == "memory"
    assert shown["end"]["limit"] == 512 * MIB and shown["end"]["memory_peak_bytes"] > 400 * MIB
    (line,) = shown["stderr"].splitlines()
    assert "memory" in line and "512 MiB" in line and "exceeded" in line


def test_a_refused_allocation_is_a_traceback(daemon):
    shown = daemon.execute("bytearray(10**15)").ok()
    assert shown["exit_code"] == 1 and "end" not in shown
    assert shown["stderr"].splitlines()[-1] == "MemoryError"


def test_others_do_not_notice(daemon):
    import concurrent.futures

    bomb = "b=bytearray(3*1024**3)\nfor i in range(0,len(b),4096): b[i]=1"
    with concurrent.futures.ThreadPoolExecutor(9) as crew:
        bombs = crew.submit(daemon.execute, bomb)
        others = [
            crew.submit(daemon.execute, f"import time; time.sleep(1); print({n})") for n in range(8)
        ]
        assert bombs.result()["end"]["cause"] == "memory"
        for number, other in enumerate(others):
            assert other.result()["stdout"] == f"{number}\n"
