"""`hutch pool`: once, and until Ctrl-C, in a pipe and at a terminal."""

import http.server
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import threading
import time

import pytest
from harness import settings
from harness.daemon import run_hutch
from harness.waiting import wait_until

USAGE, UNAVAILABLE, INTERNAL = 64, 69, 70


def clean(**more):
    """The environment without what points at a server."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("HUTCH_")}
    return {**kept, "XDG_CONFIG_HOME": "/nonexistent", **more}


def test_the_numbers(daemon):
    daemon.wait_warm()
    done = run_hutch("pool", "--url", daemon.internal.url, env=clean())
    rows = dict(line.split() for line in done.stdout.splitlines())
    assert done.returncode == 0 and done.stderr == ""
    assert rows == {key: str(value) for key, value in daemon.pool().items()}
    done = run_hutch("pool", "--json", env=clean(HUTCH_INTERNAL_URL=daemon.internal.url))
    assert json.loads(done.stdout) == daemon.pool()


def test_nobody_answers():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        for more in ([], ["--watch"], ["--json"]):
            done = run_hutch("pool", "--url", url, *more, env=clean())
            assert done.returncode == UNAVAILABLE and done.stdout == ""
            assert done.stderr.startswith(f"hutch: no server answers: cannot reach {url}")
            assert "hutch serve" in done.stderr and "HUTCH_INTERNAL_URL" in done.stderr


@pytest.mark.parametrize("url", ["nonsense", "https://127.0.0.1:1", "http://"])
def test_an_address_that_is_none(url):
    done = run_hutch("pool", "--url", url, env=clean())
    assert done.returncode == USAGE and done.stdout == "" and "--url" in done.stderr


def test_the_public_listener_has_no_pool(daemon):
    done = run_hutch("pool", "--url", daemon.public.url, env=clean())
    assert done.returncode == INTERNAL
    assert "no Hutch that shows its pool (status 404)" in done.stderr


@pytest.mark.parametrize("body", [b"[]", b"{}", b"{", b'{"warm": "many"}', b"\xff"])
def test_something_else_answers(body):
    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Other)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    done = run_hutch("pool", "--url", f"http://127.0.0.1:{server.server_port}", env=clean())
    server.shutdown()
    server.server_close()
    assert done.returncode == INTERNAL and "is no Hutch" in done.stderr


def watch(daemon, *more, **options):
    return subprocess.Popen(
        [settings.BINARY, "pool", "--watch", "--url", daemon.internal.url, *more],
        env=clean(),
        **options,
    )


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_watch_prints_a_line_for_each_change(daemon, number, code):
    daemon.wait_warm()
    process = watch(daemon, stdout=subprocess.PIPE, text=True)
    first = process.stdout.readline()
    assert re.fullmatch(r"warm 3 of 3  in flight 0  created \d+\n", first), first
    daemon.execute("import time; time.sleep(2.5)").ok()
    second = process.stdout.readline()
    assert second != first and re.fullmatch(
        r"warm \d of 3  in flight \d  created \d+\n", second
    ), second
    process.send_signal(number)
    rest, _ = process.communicate(timeout=10 * settings.SLACK)
    lines = [first, second, *rest.splitlines(keepends=True)]
    assert all(one != other for one, other in zip(lines, lines[1:]))
    assert process.returncode == code


def test_watch_as_json(daemon):
    daemon.wait_warm()
    process = watch(daemon, "--json", stdout=subprocess.PIPE, text=True)
    assert json.loads(process.stdout.readline()) == daemon.pool()
    process.send_signal(signal.SIGINT)
    assert process.wait(10 * settings.SLACK) == 130
    process.stdout.close()


def test_watch_refreshes_one_line_at_a_terminal(daemon):
    daemon.wait_warm()
    ours, theirs = pty.openpty()
    process = watch(daemon, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    text = b""

    def read():
        nonlocal text
        if select.select([ours], [], [], 0)[0]:
            text += os.read(ours, 4096)
        return text

    wait_until(lambda: b"in flight 0" in read(), 10, lambda: text)
    daemon.execute("import time; time.sleep(2.5)").ok()
    wait_until(lambda: read().count(b"\r\x1b[K") >= 2, 10, lambda: text)
    assert b"\n" not in text
    process.send_signal(signal.SIGINT)
    assert process.wait(10 * settings.SLACK) == 130
    read()
    os.close(ours)
    assert text.endswith(b"\r\n")


def test_watch_ends_with_the_server(own_daemon):
    here = own_daemon()
    process = watch(here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.readline()
    assert here.stop() == 0
    _, words = process.communicate(timeout=20 * settings.SLACK)
    assert process.returncode in (UNAVAILABLE, INTERNAL) and words.startswith("hutch: ")


def test_a_reader_that_has_left_ends_it(daemon):
    process = watch(daemon, stdout=subprocess.PIPE)
    process.stdout.readline()
    process.stdout.close()
    started = time.monotonic()
    daemon.execute("import time; time.sleep(2.5)").ok()
    process.wait(20 * settings.SLACK)
    assert process.returncode != 0 and time.monotonic() - started < 20 * settings.SLACK
