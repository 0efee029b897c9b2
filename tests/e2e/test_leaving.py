"""A client that leaves: its run is cancelled, its sandbox destroyed, its place in line freed."""

import socket
import struct

import pytest
from harness import host, settings
from harness.waiting import wait_until


def in_flight(daemon, number):
    wait_until(
        lambda: daemon.pool()["in_flight"] == number, 5, lambda: f"the pool is {daemon.pool()}"
    )


def close_with_reset(link):
    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    link.close()


@pytest.mark.parametrize("close", [socket.socket.close, close_with_reset], ids=["fin", "rst"])
def test_leaving_in_the_middle_of_a_run(daemon, close):
    code = "import os, time\nos.execv('/bin/sleep', ['sleep-SBXMARK-leaving', '599'])"
    link = daemon.internal.begin_execute(code, timeout_s=60)
    in_flight(daemon, 1)
    wait_until(lambda: host.marked_processes(), 5, "the program did not start")
    close(link)
    wait_until(lambda: not host.marked_processes(), 2, "the program lives on")
    wait_until(lambda: daemon.pool()["in_flight"] == 0, 2, "the run still counts")


def test_a_hundred_clients_that_leave(daemon):
    for turn in range(100):
        link = daemon.internal.begin_execute("import time; time.sleep(59)", timeout_s=60)
        (socket.socket.close, close_with_reset)[turn % 2](link)
    wait_until(lambda: daemon.pool()["in_flight"] == 0, 20, lambda: str(daemon.pool()))


def test_leaving_before_the_body_is_whole(daemon):
    for _ in range(20):
        link = socket.create_connection((daemon.internal.host, daemon.internal.port), 5)
        link.sendall(b"POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{")
        link.close()
    assert daemon.pool()["in_flight"] == 0


def test_a_client_that_shuts_its_sending_side_still_gets_its_answer_or_a_close(daemon):
    link = daemon.internal.begin_execute("import time; time.sleep(0.5); print('late')")
    link.shutdown(socket.SHUT_WR)
    answer = b""
    try:
        while part := link.recv(4096):
            answer += part
    except OSError:
        pass
    link.close()
    assert answer == b"" or (b" 200 " in answer[:20] and b"late" in answer)


def test_a_slow_reader_does_not_hold_its_sandbox(daemon):
    code = "for n in range(4): open(f'f{n}', 'wb').write(b'x' * 4_000_000)"
    link = daemon.internal.begin_execute(code)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    wait_until(lambda: daemon.pool()["in_flight"] == 0, 15, lambda: str(daemon.pool()))
    daemon.wait_warm()
    link.close()


def test_many_slow_readers_do_not_hold_others(daemon):
    code = "import sys; sys.stdout.write('x' * 1_000_000)"
    links = []
    for _ in range(12):
        link = daemon.internal.begin_execute(code)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        links.append(link)
    wait_until(lambda: daemon.pool()["in_flight"] == 0, 30, lambda: str(daemon.pool()))
    daemon.wait_warm()
    answer = daemon.execute("print(1)")
    assert answer["stdout"] == "1\n" and answer.seconds < 2 * settings.SLACK
    assert host.resident_bytes(daemon.pid) < 200 * (1 << 20)
    for link in links:
        link.close()


def test_an_idle_connection_does_not_hold_others(daemon):
    links = [
        socket.create_connection((daemon.internal.host, daemon.internal.port), 5) for _ in range(50)
    ]
    answer = daemon.execute("print(1)")
    assert answer["stdout"] == "1\n"
    for link in links:
        link.close()
