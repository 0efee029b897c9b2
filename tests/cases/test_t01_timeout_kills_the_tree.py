"""A deadline ends the program and everything it started, however it was started."""

from harness import host, settings
from harness.waiting import wait_until

CODE = """
import os, subprocess, time
subprocess.Popen(['setsid', 'sleep', '600.1'])
subprocess.Popen(['sh', '-c', 'trap "" TERM; sleep 600.1; : SBXMARK-t01'])
subprocess.Popen(['setsid', 'sh', '-c', 'trap "" TERM HUP INT; sleep 600.1; : SBXMARK-t01'])
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv('/bin/sleep', ['sleep-SBXMARK-t01', '600.1'])
    os._exit(0)
time.sleep(600)
"""


def test_the_whole_tree_is_dead(daemon):
    answer = daemon.execute(CODE, timeout_s=2)
    shown = answer.ok()
    assert shown["exit_code"] == -1 and shown["stderr"] == "timed out after 2s"
    assert 2000 <= shown["duration_ms"] <= 2000 + 100 * settings.SLACK
    wait_until(
        lambda: not host.marked_processes("SBXMARK-t01") and not host.marked_processes("600.1"),
        1,
        lambda: f"alive: {host.marked_processes('600.1')}",
    )
    daemon.wait_warm()
    held = host.cgroup_processes(daemon.facts())
    assert all(
        "sleep" not in host.command_line(pid) for pids in held.values() for pid in pids
    ), held
