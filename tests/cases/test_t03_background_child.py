"""A background child that holds the output open does not hold the answer."""

from harness import host, settings
from harness.waiting import wait_until


def test_the_answer_does_not_wait_for_the_child(daemon):
    code = "import subprocess\nsubprocess.run('sleep 30.3 & echo started', shell=True)"
    answer = daemon.execute(code)
    assert answer.seconds < 1 * settings.SLACK
    assert answer["stdout"] == "started\n" and answer["exit_code"] == 0
    wait_until(lambda: not host.marked_processes("sleep 30.3"), 2, "the child lives on")


def test_bytes_of_the_last_instant_are_not_lost(daemon):
    code = (
        "import subprocess\n"
        "subprocess.run(\"head -c 200000 /dev/zero | tr '\\\\0' x; (sleep 30.3 &)\", shell=True)"
    )
    for _ in range(5):
        daemon.wait_warm()
        answer = daemon.execute(code)
        assert answer["stdout"] == "x" * 200_000
        assert answer.seconds < 1 * settings.SLACK
