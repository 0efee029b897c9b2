"""How a run ends: exit statuses, signals, deadlines, and each limit by its name."""

import signal

import pytest
from harness import settings
from harness.waiting import wait_until

BASE_KEYS = ["sandbox_id", "stdout", "stderr", "exit_code", "duration_ms"]
MIB = 1 << 20


@pytest.mark.parametrize(
    "code, status",
    [
        ("pass", 0),
        ("import sys; sys.exit(0)", 0),
        ("import sys; sys.exit(7)", 7),
        ("import sys; sys.exit(255)", 255),
        ("import sys; sys.exit(256 + 3)", 3),
        ("raise SystemExit", 0),
        ("import os; os._exit(9)", 9),
        ("import os; os._exit(137)", 137),
        ("1/0", 1),
        ("exit(4)", 4),
        ("import atexit, os; atexit.register(os._exit, 6)", 6),
    ],
)
def test_the_status_of_the_program(daemon, code, status):
    shown = daemon.execute(code).ok()
    assert shown["exit_code"] == status and list(shown) == BASE_KEYS


def test_a_message_as_exit_status(daemon):
    shown = daemon.execute("import sys; sys.exit('no such column')").ok()
    assert shown["exit_code"] == 1 and shown["stderr"] == "no such column\n"


@pytest.mark.parametrize(
    "name", ["SIGKILL", "SIGTERM", "SIGSEGV", "SIGABRT", "SIGHUP", "SIGUSR1", "SIGPIPE", "SIGFPE"]
)
def test_death_by_a_signal(daemon, name):
    number = getattr(signal, name)
    code = f"""
import os, signal
signal.signal({int(number)}, signal.SIG_DFL) if {name!r} != 'SIGKILL' else None
os.kill(os.getpid(), {int(number)})
"""
    shown = daemon.execute(code).ok()
    assert shown["exit_code"] == 128 + number
    assert list(shown) == [*BASE_KEYS, "end"]
    end = shown["end"]
    assert end["cause"] == "signaled"
    assert end["signal"] in (int(number), name)


def test_death_by_a_fault_in_native_code(daemon):
    shown = daemon.execute("import ctypes; ctypes.string_at(0)").ok()
    assert shown["exit_code"] == 128 + signal.SIGSEGV and shown["end"]["cause"] == "signaled"


def test_a_deadline(daemon):
    answer = daemon.execute("while True: pass", timeout_s=1)
    shown = answer.ok()
    assert list(shown) == BASE_KEYS
    assert shown["stdout"] == "" and shown["stderr"] == "timed out after 1s"
    assert shown["exit_code"] == -1
    assert 1000 <= shown["duration_ms"] <= 1000 + 100 * settings.SLACK


def test_a_deadline_after_words_without_a_newline(daemon):
    code = "import sys, time; sys.stderr.write('half a line'); sys.stderr.flush(); time.sleep(60)"
    assert daemon.execute(code, timeout_s=1)["stderr"] == "half a line\ntimed out after 1s"


def test_a_deadline_after_a_whole_line(daemon):
    code = "import sys, time; print('whole', file=sys.stderr, flush=True); time.sleep(60)"
    assert daemon.execute(code, timeout_s=1)["stderr"] == "whole\ntimed out after 1s"


def test_buffered_text_survives_a_deadline(daemon):
    code = "import time\nprint('printed before')\nprint('no newline', end='')\ntime.sleep(60)"
    shown = daemon.execute(code, timeout_s=1).ok()
    assert shown["stdout"] == "printed before\nno newline" and shown["exit_code"] == -1


def test_buffered_text_survives_a_deadline_in_a_busy_loop(daemon):
    shown = daemon.execute("print('kept')\nx = 0\nwhile True: x += 1", timeout_s=1).ok()
    assert shown["stdout"] == "kept\n" and shown["exit_code"] == -1


def test_a_deadline_with_every_signal_ignored(daemon):
    code = """
import signal
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
while True: pass
"""
    answer = daemon.execute(code, timeout_s=1)
    assert answer["exit_code"] == -1 and answer.seconds < 2 * settings.SLACK


def test_a_program_cannot_claim_a_timeout(daemon):
    code = (
        "import os, sys; sys.stderr.write('timed out after 5s'); sys.stderr.flush(); os._exit(255)"
    )
    shown = daemon.execute(code).ok()
    assert shown["exit_code"] == 255 and shown["stderr"] == "timed out after 5s"


@pytest.mark.cgroup_limits
def test_memory_beyond_the_limit(daemon):
    code = (
        "print('start', flush=True)\nb = bytearray(3 * 1024**3)\n"
        "for i in range(0, len(b), 4096): b[i] = 1"
    )
    shown = daemon.execute(code).ok()
    assert shown["exit_code"] == 137 and shown["stdout"] == "start\n"
    assert list(shown) == [*BASE_KEYS, "end"]
    end = shown["end"]
    assert end["cause"] == "memory" and end["limit"] == 512 * MIB
    assert 400 * MIB < end["memory_peak_bytes"] <= 513 * MIB
    assert "512 MiB" in shown["stderr"] and len(shown["stderr"].splitlines()) == 1


@pytest.mark.cgroup_limits
def test_memory_in_a_child_alone(daemon):
    """The program notices that its child was killed; it is the run that met the limit."""
    code = """
import subprocess, sys
child = "b = bytearray(3 * 1024**3)\\nfor i in range(0, len(b), 4096): b[i] = 1"
done = subprocess.run([sys.executable, '-c', child])
print('child', done.returncode)
sys.exit(5)
"""
    shown = daemon.execute(code).ok()
    assert shown["exit_code"] != -1
    assert shown["exit_code"] == 137 or "child -9" in shown["stdout"]


def test_a_refused_allocation_is_an_ordinary_error(daemon):
    shown = daemon.execute("b = bytearray(10**15)").ok()
    assert shown["exit_code"] == 1 and "MemoryError" in shown["stderr"]
    assert list(shown) == BASE_KEYS


def test_two_hundred_megabytes_fit(daemon):
    code = "b = bytearray(200_000_000)\nb[::4096] = b'1' * len(b[::4096])\nprint(len(b))"
    assert daemon.execute(code)["stdout"] == "200000000\n"


@pytest.mark.cgroup_limits
def test_the_memory_limit_is_a_setting(own_daemon):
    here = own_daemon(sets={"limits.memory_bytes": 300 * MIB, "limits.disk_bytes": 64 * MIB})
    shown = here.execute("b = bytearray(290 * 1024**2)\nb[::4096] = b'1' * len(b[::4096])").ok()
    assert shown["end"]["cause"] == "memory" and shown["end"]["limit"] == 300 * MIB
    assert "300 MiB" in shown["stderr"]


@pytest.mark.cgroup_limits
def test_too_many_processes(daemon):
    code = """
import os, time
made = 0
while True:
    if os.fork() == 0:
        time.sleep(30)
        os._exit(0)
    made += 1
"""
    shown = daemon.execute(code).ok()
    assert shown["exit_code"] == 1 and "BlockingIOError" in shown["stderr"]
    assert shown["end"]["cause"] == "processes" and shown["end"]["limit"] == 128


def test_a_refused_process_that_the_program_survives(daemon):
    code = """
import os, time
made = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(30)
            os._exit(0)
        made += 1
except OSError:
    print(100 < made < 128)
"""
    shown = daemon.execute(code).ok()
    assert shown["exit_code"] == 0 and shown["stdout"] == "True\n"
    assert shown.get("end", {"cause": "exited"})["cause"] == "exited"


def test_threads_count_as_processes(daemon):
    code = """
import threading
gate = threading.Event()
made = 0
try:
    while made < 1000:
        threading.Thread(target=gate.wait, daemon=True).start()
        made += 1
except RuntimeError as error:
    print(made < 128, error)
gate.set()
"""
    assert daemon.execute(code)["stdout"].startswith("True")


def test_a_full_disk(daemon):
    code = "f = open('/tmp/f', 'wb', 0)\nwhile True: f.write(b'x' * 1000000)"
    shown = daemon.execute(code).ok()
    assert shown["exit_code"] == 1 and "No space left on device" in shown["stderr"]
    assert shown["end"]["cause"] == "disk" and shown["end"]["limit"] == 256 * MIB


def test_no_inodes_left(daemon):
    code = (
        "import os\nos.mkdir('/tmp/d')\nn = 0\nwhile True:\n"
        "    os.close(os.open(f'/tmp/d/{n}', os.O_CREAT | os.O_WRONLY)); n += 1"
    )
    shown = daemon.execute(code, timeout_s=30).ok()
    assert "No space left on device" in shown["stderr"]
    assert shown["end"]["cause"] == "disk" and shown["end"]["limit"] == 65536


def test_a_full_disk_that_was_emptied_again(daemon):
    code = """
import os
f = open('/tmp/f', 'wb', 0)
try:
    while True: f.write(b'x' * 1000000)
except OSError:
    f.close(); os.remove('/tmp/f')
raise SystemExit(3)
"""
    shown = daemon.execute(code).ok()
    assert shown["exit_code"] == 3 and list(shown) == BASE_KEYS


def test_working_directory_home_and_tmp_share_one_limit(daemon):
    code = """
import os
total = 0
for place in ('/work/f', '/tmp/f', os.path.expanduser('~/f')):
    with open(place, 'wb', 0) as f:
        try:
            while f.tell() < 150 << 20: f.write(b'x' * (1 << 20))
        except OSError as error:
            pass
        total += f.tell()
for place in ('/work/f', '/tmp/f', os.path.expanduser('~/f')): os.remove(place)
print(total >> 20)
"""
    total = int(daemon.execute(code)["stdout"])
    assert 240 <= total <= 256


def test_shared_memory_has_its_own_limit(daemon):
    code = """
f = open('/dev/shm/f', 'wb', 0)
try:
    while True: f.write(b'x' * (1 << 20))
except OSError as error:
    print(f.tell() >> 20, error.strerror)
"""
    assert daemon.execute(code)["stdout"] == "64 No space left on device\n"


def test_open_files(daemon):
    code = """
import os, resource
print(resource.getrlimit(resource.RLIMIT_NOFILE))
fds = []
try:
    while len(fds) < 5000: fds.append(os.dup(0))
except OSError as error:
    print(error.strerror, len(fds) > 900)
for fd in fds: os.close(fd)
"""
    assert daemon.execute(code)["stdout"] == "(1024, 1024)\nToo many open files True\n"


@pytest.mark.cgroup_limits
def test_one_processor(daemon):
    code = """
import os, time
for _ in range(3): os.fork()
wall, cpu = time.monotonic(), time.process_time()
while time.monotonic() - wall < 2: pass
os.write(1, f'{time.process_time() - cpu:.2f} '.encode())
"""
    shown = daemon.execute(code, report=True).ok()
    assert 500 < shown["end"]["cpu_ms"] < 2600


def test_the_limits_are_settings(own_daemon):
    here = own_daemon(
        sets={"limits.processes": 40, "limits.open_files": 256, "limits.shm_bytes": 8 * MIB}
    )
    code = """
import os, resource
v = os.statvfs('/dev/shm')
print(resource.getrlimit(resource.RLIMIT_NOFILE)[1], (v.f_blocks * v.f_frsize) >> 20)
made = 0
try:
    while True:
        if os.fork() == 0:
            import time; time.sleep(30); os._exit(0)
        made += 1
except OSError: print(made < 40)
"""
    assert here.execute(code)["stdout"] == "256 8\nTrue\n"


def test_children_end_with_the_program(daemon):
    from harness import host

    code = """
import subprocess
subprocess.Popen(['sleep', '600', ], stdout=subprocess.DEVNULL, start_new_session=True)
subprocess.Popen(['sh', '-c', 'sleep 601; : SBXMARK-child'], start_new_session=True)
print('done')
"""
    answer = daemon.execute(code)
    assert answer["stdout"] == "done\n" and answer.seconds < 2 * settings.SLACK
    wait_until(lambda: not host.marked_processes(), 2, "a child lives on")


def test_the_end_names_what_was_dropped(daemon):
    shown = daemon.execute("print('x' * 3_000_000)").ok()
    assert shown["exit_code"] == 0
    assert shown["stdout_bytes"] == 3_000_001 and shown["stderr_bytes"] == 0
    assert shown["end"]["cause"] == "exited"
