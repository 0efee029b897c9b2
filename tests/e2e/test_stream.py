"""A run that is followed: its events, their order, their moment, and everybody's manners."""

import hashlib
import os
import random
import signal
import socket
import threading
import time

import pytest
from harness import host, settings
from harness.events import Stream, follow
from harness.waiting import wait_until


def stream(daemon, code, **more):
    return Stream(daemon.internal, code, **more)


def run(daemon, code, **more):
    with stream(daemon, code, **more) as following:
        return follow(following)


def test_every_event_in_its_place(daemon):
    done = run(
        daemon,
        "import sys\n"
        "print('one', flush=True)\n"
        "print('two', file=sys.stderr, flush=True)\n"
        "open('result.csv', 'w').write('a,b')\n"
        "sys.exit(3)\n",
    )
    assert set(done.types[1:3]) == {"stdout", "stderr"} and done.types[3:] == ["file", "exit"]
    assert (done.stdout, done.stderr) == (b"one\n", b"two\n")
    assert done.files == {"result.csv": b"a,b"}
    assert done.exit["exit_code"] == 3 and done.exit["end"]["cause"] == "exited"
    assert done.exit["sandbox_id"] == done.start["sandbox_id"]
    assert (done.exit["stdout_bytes"], done.exit["stderr_bytes"]) == (4, 4)
    assert done.exit["files_omitted"] == [] and done.exit["files_deleted"] == []
    assert not {"stdout", "stderr", "files"} & set(done.exit)


def test_a_piece_is_sent_while_the_program_goes_on(daemon):
    """The program goes on only when the test, who has read the piece, lets it: by killing it."""
    with stream(
        daemon, "import time\nprint('now', flush=True)\ntime.sleep(50)\n", timeout_s=60
    ) as following:
        assert following.next().type == "start"
        piece = following.next()
        assert (piece.type, piece.data) == ("stdout", {"text": "now\n"})
        assert daemon.pool()["in_flight"] == 1


def test_pieces_come_within_moments(daemon):
    """Each piece says when it was written, by the clock that the host and the sandbox share."""
    code = (
        "import time\n"
        "for _ in range(20):\n"
        "    print(time.clock_gettime_ns(time.CLOCK_MONOTONIC), flush=True)\n"
        "    time.sleep(0.05)\n"
    )
    late = []
    with stream(daemon, code) as following:
        for event in following:
            if event.type == "stdout":
                late.append(time.monotonic_ns() - int(event.bytes.split()[-1]))
    assert len(late) == 20
    assert sorted(late)[10] < 10e6 * settings.SLACK, [n // 1000 for n in late]


def test_the_plain_answer_and_the_stream_tell_the_same(daemon):
    code = (
        "import sys, os\n"
        "print('é' * 3000)\n"
        "print('warn', file=sys.stderr)\n"
        "os.makedirs('d')\n"
        "open('d/x.txt', 'w').write('x')\n"
        "os.mkfifo('pipe')\n"
        "os.remove('in.txt')\n"
        "raise SystemExit(7)\n"
    )
    files = [{"path": "in.txt", "content_b64": "YQ=="}]
    plain = daemon.execute(code, files=files, report=True).ok()
    done = run(daemon, code, files=files)
    assert done.stdout.decode() == plain.pop("stdout")
    assert done.stderr.decode() == plain.pop("stderr")
    assert list(done.files) == [file["path"] for file in plain.pop("files")]
    assert list(done.exit) == list(plain)
    for key in ("exit_code", "files_omitted", "files_deleted", "stdout_bytes", "stderr_bytes"):
        assert done.exit[key] == plain[key]
    assert done.exit["end"]["cause"] == plain["end"]["cause"]


def test_bytes_that_are_no_text(daemon):
    code = (
        "import sys\n"
        "every = bytes(range(256))\n"
        "for _ in range(2000): sys.stdout.buffer.write(every)\n"
        "sys.stdout.flush()\n"
    )
    done = run(daemon, code)
    assert done.stdout == bytes(range(256)) * 2000


def test_a_character_is_not_cut(daemon):
    """Written byte by byte, and in portions that end inside a character."""
    code = (
        "import os, time\n"
        "for byte in '€'.encode(): os.write(1, bytes([byte])); time.sleep(0.02)\n"
        "text = ('aé€😀' * 30000).encode()\n"
        "while text: text = text[os.write(1, text[:65537]):]\n"
    )
    with stream(daemon, code) as following:
        pieces = [event for event in following if event.type == "stdout"]
    assert all("text" in piece.data for piece in pieces)
    assert "".join(piece.data["text"] for piece in pieces) == "€" + "aé€😀" * 30000


def test_a_timeout_keeps_what_came_before(daemon):
    done = run(daemon, "print('so far', end='')\nwhile True: pass\n", timeout_s=1)
    assert done.stdout == b"so far"
    assert done.stderr == b"timed out after 1s"
    assert done.exit["exit_code"] == -1
    assert done.exit["end"]["cause"] == "timeout" and done.exit["end"]["limit"] == 1


def test_the_lines_of_the_door_stand_alone(daemon):
    done = run(
        daemon,
        "import sys, time\nsys.stderr.write('unfinished')\nsys.stderr.flush()\ntime.sleep(9)\n",
        timeout_s=1,
    )
    assert done.stderr == b"unfinished\ntimed out after 1s"


@pytest.mark.cgroup_limits
def test_a_memory_kill_is_named(daemon):
    done = run(daemon, "print('x', flush=True)\na = bytearray(2 << 30)\na[::4096] = a[::4096]\n")
    if done.exit["end"]["cause"] == "exited":  # MemoryError in place of a kill
        pytest.skip("the allocation was refused")
    assert done.stdout == b"x\n"
    assert done.exit["end"]["cause"] == "memory" and done.exit["exit_code"] == 137
    assert done.stderr.startswith(b"memory limit of ") and done.stderr.endswith(b" exceeded\n")


def test_files_come_one_by_one(daemon):
    code = (
        "import os, random\n"
        "random.seed(1)\n"
        "for i in range(4): open(f'f{i}', 'wb').write(random.randbytes(3_900_000))\n"
        "open('big', 'wb').write(bytes(5_000_000))\n"
    )
    done = run(daemon, code)
    assert sorted(done.files) == ["f0", "f1", "f2", "f3"]
    assert all(len(data) == 3_900_000 for data in done.files.values())
    assert done.exit["files_omitted"] == [{"path": "big", "size": 5_000_000, "reason": "too_large"}]


def test_no_cap_and_every_byte(daemon):
    """Fifty times what a plain answer keeps, exactly."""
    code = (
        "import random, sys, hashlib\n"
        "random.seed(5)\n"
        "digest = hashlib.sha256()\n"
        "for _ in range(50):\n"
        "    part = random.randbytes(1_000_000)\n"
        "    digest.update(part)\n"
        "    sys.stdout.buffer.write(part)\n"
        "print(digest.hexdigest(), file=sys.stderr)\n"
    )
    done = run(daemon, code, timeout_s=60)
    assert len(done.stdout) == 50_000_000 == done.exit["stdout_bytes"]
    assert hashlib.sha256(done.stdout).hexdigest() == done.stderr.decode().strip()


def test_a_slow_reader_makes_the_program_wait(own_daemon):
    """Nothing is read until the program stands still; the server holds little; others go on; then
    every byte comes."""
    daemon = own_daemon()
    daemon.wait_warm()
    daemon.execute("print(1)").ok()
    code = (
        "import sys, time\n"
        "line = 'x' * 999 + '\\n'\n"
        "for i in range(50_000): sys.stdout.write(line)\n"
    )
    with stream(daemon, code, receive_bytes=65536) as following:
        before = host.resident_bytes(daemon.pid)
        wait_until(lambda: daemon.pool()["in_flight"] == 1, 10, "in_flight is not 1")
        # Others get their answers while this one waits.
        for _ in range(5):
            assert daemon.execute("print(2**32)")["stdout"] == "4294967296\n"
        assert daemon.pool()["in_flight"] == 1, "the program has ended: nobody made it wait"
        assert host.resident_bytes(daemon.pid) - before < 16 << 20
        total = 0
        for event in following:
            if event.type == "stdout":
                total += len(event.bytes)
                last = event
    assert total == 50_000_000 and last.bytes.endswith(b"x\n")
    assert following.whole


def test_a_deadline_does_not_wait_for_a_slow_reader(daemon):
    with stream(daemon, "while True: print('x' * 999)\n", receive_bytes=65536, timeout_s=1) as slow:
        wait_until(lambda: daemon.pool()["in_flight"] == 1, 10, "in_flight is not 1")
        # The sandbox is gone while its output is still waiting.
        wait_until(lambda: daemon.pool()["in_flight"] == 0, 10, "in_flight is not 0")
        done = follow(slow)
    assert done.exit["end"]["cause"] == "timeout"
    assert done.exit["stdout_bytes"] == len(done.stdout) > 1 << 20
    assert set(done.stdout) == set(b"x\n")


def leave(link, how):
    if how == "reset":
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        link.close()
    elif how == "close":
        link.close()
    else:
        link.shutdown(socket.SHUT_WR)


@pytest.mark.parametrize("how", ["close", "reset", "half"])
@pytest.mark.parametrize("what", ["silent", "flood"])
def test_who_leaves_ends_the_run(daemon, how, what):
    """Between two events, and in the middle of a write."""
    code = "import time\nprint('on', flush=True)\n"
    code += "time.sleep(55)\n" if what == "silent" else "while True: print('x' * 999)\n"
    with stream(daemon, code, receive_bytes=65536, timeout_s=60) as following:
        assert following.next().type == "start"
        assert following.next().type == "stdout"
        assert daemon.pool()["in_flight"] == 1
        leave(following.link, how)
        wait_until(lambda: daemon.pool()["in_flight"] == 0, 5, "in_flight is not 0")


def test_who_leaves_while_files_are_sent_is_forgotten(daemon):
    code = "for i in range(4): open(f'f{i}', 'wb').write(bytes(4_000_000))\n"
    with stream(daemon, code, receive_bytes=65536) as following:
        assert following.next().type == "start"
        wait_until(lambda: daemon.pool()["in_flight"] == 0, 20, "in_flight is not 0")
        leave(following.link, "reset")
    assert daemon.execute("print(1)")["stdout"] == "1\n"


def test_large_files_wait_for_a_slow_reader_without_their_sandbox(own_daemon):
    """16 MB of files: the sandbox is gone, the server holds them once, others go on."""
    daemon = own_daemon()
    daemon.wait_warm()
    code = "for i in range(4): open(f'f{i}', 'wb').write(bytes([i]) * 4_000_000)\n"
    before = host.resident_bytes(daemon.pid)
    with stream(daemon, code, receive_bytes=65536) as slow:
        assert slow.next().type == "start"
        wait_until(lambda: daemon.pool()["in_flight"] == 0, 20, "the run waits for its reader")
        daemon.wait_warm()
        assert daemon.execute("print(2**32)")["stdout"] == "4294967296\n"
        assert host.resident_bytes(daemon.pid) - before < 40 << 20
        files = [event for event in slow if event.type == "file"]
        assert slow.whole
    assert [event.bytes for event in files] == [bytes([i]) * 4_000_000 for i in range(4)]


def test_leaving_at_any_moment(daemon):
    """The audit after the test counts descriptors, processes and runs."""
    code = (
        "import sys\n"
        "for i in range(3000): print('x' * 500)\n"
        "open('f', 'wb').write(bytes(1_000_000))\n"
    )
    random.seed(11)
    for turn in range(25):
        with stream(daemon, code, receive_bytes=65536) as following:
            for _ in range(random.randrange(40)):
                if following.next() is None:
                    break
            leave(following.link, random.choice(["close", "reset", "half"]))
        if turn % 10 == 9:
            assert run(daemon, "print(1)").stdout == b"1\n"
    wait_until(lambda: daemon.pool()["in_flight"] == 0, 10, "runs go on without their clients")


def test_an_error_before_the_start_is_plain(daemon):
    with stream(daemon, "") as following:
        assert following.plain() == {"error": "code is required"}
        assert following.status == 400
        assert following.head["content-type"] == "application/json"
    with stream(daemon, "1", files=[{"path": "../x", "content_b64": ""}]) as following:
        assert "escapes" in following.plain()["error"] and following.status == 502


def test_1_0_gets_a_stream_until_the_end_of_the_connection(daemon):
    with stream(daemon, "print('hello')\n", version="1.0") as following:
        done = follow(following)
        assert "transfer-encoding" not in following.head
        assert following.head["connection"] == "close"
    assert done.stdout == b"hello\n"


@pytest.mark.slow
def test_two_hundred_in_sequence_leave_nothing(daemon):
    """The audit after the test counts."""
    ids = set()
    for turn in range(200):
        done = run(daemon, f"print({turn})\n")
        assert done.stdout == f"{turn}\n".encode() and done.exit["exit_code"] == 0
        ids.add(done.start["sandbox_id"])
    assert len(ids) == 200


def test_one_connection_goes_on_after_a_stream(daemon):
    with stream(daemon, "print(1)\n") as following:
        assert follow(following).stdout == b"1\n"
        following.link.sendall(
            f"GET /healthz HTTP/1.1\r\nHost: {daemon.internal.host}\r\n\r\n".encode()
        )
        following.head = None
        assert following.plain() == {"status": "ok"}


def test_a_program_that_is_killed_says_so(daemon):
    """From outside, as the kernel or an operator would."""
    code = "import time\nkept = open('here', 'w')\nprint('on', flush=True)\ntime.sleep(50)\n"
    with stream(daemon, code) as following:
        assert following.next().type == "start"
        assert following.next().type == "stdout"
        os.kill(program(daemon, "here"), signal.SIGKILL)
        *_, last = following
    assert last.type == "exit"
    assert last.data["exit_code"] == 137 and last.data["end"]["cause"] == "signaled"
    assert last.data["end"]["signal"] == "SIGKILL"


def test_a_sandbox_that_is_killed_ends_its_stream(daemon):
    """Its pid 1 goes, and everything in it: how the program ended is known all the same, but its
    files cannot be read any more where it left some."""
    code = "import time\nkept = open('here', 'w')\nprint('on', flush=True)\ntime.sleep(50)\n"
    with stream(daemon, code) as following:
        assert following.next().type == "start"
        assert following.next().type == "stdout"
        space = os.readlink(f"/proc/{program(daemon, 'here')}/ns/pid")
        (init,) = [
            pid
            for pid in host.processes(daemon.facts())
            if host.status_fields(pid).get("NSpid", "").split()[-1:] == ["1"]
            and os.readlink(f"/proc/{pid}/ns/pid") == space
        ]
        os.kill(init, signal.SIGKILL)
        *_, last = following
        assert following.whole
    if last.type == "exit":
        assert last.data["exit_code"] == 137 and last.data["end"]["cause"] == "signaled"
    else:
        assert last.data["error"] in (
            "sandbox execution failed: the sandbox was lost before the run had ended",
            "the sandbox returned a response that could not be read",
        )


def program(daemon, name):
    """The process of a sandbox that has a file of this name open, as the host numbers it."""
    for pid in host.processes(daemon.facts()):
        if any(what.endswith(f"/work/{name}") for what in host.descriptors(pid).values()):
            return pid
    raise AssertionError("no process has the file open")


def test_a_stop_lets_the_stream_finish(own_daemon):
    daemon = own_daemon()
    code = (
        "import time\n"
        "print('before', flush=True)\n"
        "time.sleep(1.5)\n"
        "print('after', flush=True)\n"
        "open('f', 'w').write('x')\n"
    )
    with stream(daemon, code) as following:
        assert following.next().type == "start"
        assert following.next().bytes == b"before\n"
        daemon.terminate()
        rest = list(following)
    assert [event.type for event in rest] == ["stdout", "file", "exit"]
    assert rest[0].bytes == b"after\n" and following.whole
    assert daemon.wait() == 0


def test_a_stop_does_not_wait_for_a_reader_that_reads_nothing(own_daemon):
    daemon = own_daemon()
    code = "while True: print('x' * 999)\n"
    with stream(daemon, code, receive_bytes=65536, timeout_s=2):
        wait_until(lambda: daemon.pool()["in_flight"] == 1, 10, "the run did not begin")
        daemon.terminate()
        assert daemon.wait(20) == 0


def test_a_second_stop_ends_the_stream_with_an_error(own_daemon):
    daemon = own_daemon()
    with stream(daemon, "import time\nprint('on', flush=True)\ntime.sleep(50)\n") as following:
        assert following.next().type == "start"
        assert following.next().type == "stdout"
        daemon.terminate()
        wait_until(lambda: '"draining"' in daemon.log_text(), 10, "no word of draining")
        daemon.terminate()
        (last,) = list(following)
    assert last.type == "error"
    assert last.data == {"error": "the server is stopping - try again shortly"}
    assert daemon.wait() == 0


def test_a_lost_warden_ends_the_stream_with_an_error(own_daemon):
    daemon = own_daemon()
    with stream(daemon, "import time\nprint('on', flush=True)\ntime.sleep(50)\n") as following:
        assert following.next().type == "start"
        assert following.next().type == "stdout"
        os.kill(daemon.warden_pid, signal.SIGKILL)
        *_, last = following
    assert last.type == "error" and "sandbox execution failed" in last.data["error"]
    assert daemon.wait() != 0


def test_many_at_once_do_not_mix(daemon):
    failures = []

    def one(name):
        try:
            done = run(daemon, f"for i in range(2000): print('{name}', i)\n")
            assert done.stdout == b"".join(b"%s %d\n" % (name.encode(), i) for i in range(2000))
        except BaseException as error:  # noqa: BLE001 - shown by the test
            failures.append(error)

    threads = [threading.Thread(target=one, args=(f"n{i}",)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_arguments(daemon):
    code = "import sys\nprint(sys.argv)\nprint(sys.orig_argv[1:])\n"
    args = ["-v", "", "two words", "é😀", "--x=$HOME", "-"]
    expected = f"{['/code/main.py', *args]}\n" * 2
    assert daemon.execute(code, args=args)["stdout"] == expected
    assert run(daemon, code, args=args).stdout.decode() == expected
    assert daemon.execute(code)["stdout"] == f"{['/code/main.py']}\n" * 2


def test_as_many_arguments_as_are_taken(daemon):
    code = "import sys\nprint(len(sys.argv), sum(map(len, sys.argv[1:])))\n"
    args = ["a" * 128] * 1024
    assert daemon.execute(code, args=args)["stdout"] == "1025 131072\n"
    refused = daemon.execute(code, args=[*args[1:], "a" * 129])
    assert refused.error == "args must be at most 131072 bytes in all"


def test_the_image_may_be_named(daemon):
    assert daemon.execute("print(1)", image="python")["stdout"] == "1\n"
    refused = daemon.execute("print(1)", image="ruby")
    assert refused.status == 400
    assert refused.error == 'image must be "python": this server serves no other'
