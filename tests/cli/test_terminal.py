"""`hutch run` on a terminal: the line of progress, Ctrl-C, a window that changes or closes."""

import re
import shutil
import threading

import pytest
from harness import settings
from harness.daemon import new_state_dir
from harness.fake_server import EXIT, HEAD, FakeServer, chunk, event
from harness.run_command import RunCommand
from harness.terminal import Terminal, screen
from harness.waiting import wait_until

PROGRESS = rb"\r\x1b\[Kstarting a sandbox\.\.\. \d+\.\d s"
LONG = "import time; print('begun', flush=True); time.sleep(60)"


@pytest.fixture
def place():
    """The command at a server that says what the test wants."""
    command = RunCommand("")
    yield command
    command.end()


@pytest.fixture
def on_terminal():
    """on_terminal(command, "run's arguments"...): started on a terminal of its own."""
    started = []

    def start(command, *given, environment=None, **more):
        environment = command.environment({"TERM": "xterm-256color", **(environment or {})})
        terminal = Terminal(command.arguments(*given), environment, command.place, **more)
        started.append(terminal)
        return terminal

    yield start
    for terminal in started:
        terminal.end()


class Slow(FakeServer):
    """Answers when it is released, and then all at once."""

    def __init__(self, *events):
        self.released = threading.Event()
        self.events = events
        super().__init__(self._late)

    def _late(self, link, _body):
        assert self.released.wait(60)
        link.sendall(HEAD + b"".join(map(chunk, self.events)) + b"0\r\n\r\n")


OUTPUT = (event("start", {}), event("stdout", {"text": "answer\n"}), EXIT)


def test_progress_counts_while_nothing_is_printed_and_leaves_no_trace(place, on_terminal):
    with Slow(*OUTPUT) as server:
        place.url = server.url
        terminal = on_terminal(place, "-c", "1")
        terminal.read_until(PROGRESS + rb"(?:.|\r)*" + PROGRESS)
        seconds = [float(s) for s in re.findall(rb"(\d+\.\d) s", terminal.seen)]
        assert seconds == sorted(seconds) and 0.3 <= seconds[0] < seconds[-1]
        server.released.set()
        assert terminal.wait() == 0
    assert screen(terminal.seen) == ["answer", ""]
    assert re.fullmatch(rb"(?:" + PROGRESS + rb")+\r\x1b\[Kanswer\r\n", terminal.seen)


@pytest.mark.parametrize(
    "given, environment", [(["-q"], {}), ([], {"TERM": "dumb"}), ([], {"TERM": ""})]
)
def test_no_progress_where_it_is_not_wanted(place, on_terminal, given, environment):
    with Slow(*OUTPUT) as server:
        place.url = server.url
        terminal = on_terminal(place, *given, "-c", "1", environment=environment)
        wait_until(lambda: server.requests, 20, "no request came")
        assert terminal.read(0.8)
        server.released.set()
        assert terminal.wait() == 0
    assert terminal.seen == b"answer\r\n"


def test_no_progress_where_standard_error_is_no_terminal(place, on_terminal):
    with Slow(*OUTPUT) as server:
        place.url = server.url
        words = place.arguments("-c", "1")
        place.arguments = lambda: ["sh", "-c", 'exec "$@" 2> words', "sh", *words]
        terminal = on_terminal(place)
        wait_until(lambda: server.requests, 20, "no request came")
        assert terminal.read(0.8)
        server.released.set()
        assert terminal.wait() == 0
    assert terminal.seen == b"answer\r\n" and (place.place / "words").read_bytes() == b""


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}])
def test_there_is_no_colour(place, on_terminal, environment):
    with Slow(event("file", {"path": "f", "content_b64": "eA=="}), EXIT) as server:
        place.url = server.url
        terminal = on_terminal(place, "-c", "1", environment=environment)
        terminal.read_until(PROGRESS)
        server.released.set()
        assert terminal.wait() == 0
    # screen() knows no colour and would fail.
    assert screen(terminal.seen) == ["hutch: 1 file not kept, f first; --out DIR keeps them", ""]


def test_a_window_that_changes_is_harmless(place, on_terminal):
    with Slow(*OUTPUT) as server:
        place.url = server.url
        terminal = on_terminal(place, "-c", "1")
        terminal.read_until(PROGRESS)
        for columns in (200, 10, 3, 1, 40):
            terminal.resize(5, columns)
            before = len(terminal.seen)
            terminal.read_until(rb"(?s).{%d,}\r\x1b\[K.*\r\x1b\[K" % before)
            drawn = terminal.seen[before:].split(b"\r\x1b[K")
            assert all(len(line) < columns for line in drawn[2:]), (columns, drawn)
        server.released.set()
        assert terminal.wait() == 0
    assert screen(terminal.seen)[-2:] == ["answer", ""]


def test_ctrl_c_while_a_sandbox_is_awaited(place, on_terminal):
    with Slow() as server:
        place.url = server.url
        terminal = on_terminal(place, "-c", "1")
        terminal.read_until(PROGRESS)
        terminal.press(b"\x03")
        wait_until(lambda: b"^C" in terminal.seen or not terminal.read(), 20, "no echo")
        server.released.set()
        assert terminal.wait() == 130
    assert screen(terminal.seen)[-1] in ("", "^C")


def test_ctrl_c_ends_the_run_and_leaves_nothing(hutch, on_terminal, daemon):
    terminal = on_terminal(hutch, "-c", LONG)
    terminal.read_until(rb"begun\r\n")
    tree = hutch.tree(terminal.pid)
    terminal.press(b"\x03")
    assert terminal.wait() == 130
    assert screen(terminal.seen) in (["begun", "^C"], ["begun", ""])
    assert daemon.pool()["in_flight"] == 0
    hutch.check_gone(tree)


@pytest.mark.skipif(not settings.ROOTLESS, reason="root mounts the image as it is")
def test_unpacking_is_said_and_can_be_interrupted(on_terminal):
    command = RunCommand()
    command.state, borrowed = new_state_dir(images=False), command.state
    try:
        terminal = on_terminal(command, "-c", "print('done')")
        terminal.read_until(rb"unpacking the image, once\.\.\. \d+\.\d s")
        tree = command.tree(terminal.pid)
        terminal.press(b"\x03")
        assert terminal.wait(10) == 130
        command.check_gone(tree)
        assert not list((command.state / "images").glob("*/rootfs"))
        again = on_terminal(command, "-c", "print('done')")
        assert again.wait(60) == 0 and screen(again.seen)[0] == "done"
    finally:
        shutil.rmtree(borrowed, ignore_errors=True)
        command.end()


def test_ctrl_backslash_leaves_nothing_either(hutch, on_terminal):
    """It ends the command at once; what is behind it notices."""
    terminal = on_terminal(hutch, "-c", LONG)
    terminal.read_until(rb"begun\r\n")
    tree = hutch.tree(terminal.pid)
    terminal.press(b"\x1c")
    assert terminal.wait() == 131
    hutch.check_gone(tree)


def test_a_window_that_closes_ends_the_run(hutch, on_terminal, daemon):
    terminal = on_terminal(hutch, "-c", LONG)
    terminal.read_until(rb"begun\r\n")
    tree = hutch.tree(terminal.pid)
    terminal.hang_up()
    assert terminal.wait_after_hang_up() == 129
    assert daemon.pool()["in_flight"] == 0
    hutch.check_gone(tree)


def test_output_that_is_held_with_ctrl_s_can_be_interrupted(hutch, on_terminal):
    terminal = on_terminal(hutch, "-c", "while True: print('x' * 70)")
    terminal.read_until(rb"xxx")
    terminal.press(b"\x13")
    while len(seen := terminal.seen) >= 0 and terminal.read(0.5) and terminal.seen != seen:
        continue
    terminal.press(b"\x03")
    assert terminal.wait() == 130


def test_the_sandbox_has_no_terminal(hutch, on_terminal):
    code = "import os, sys; print([os.isatty(fd) for fd in (0, 1, 2)]); open('/dev/tty')"
    terminal = on_terminal(hutch, "-c", code)
    assert terminal.wait() == 1
    assert b"[False, False, False]" in terminal.seen and b"Error" in terminal.seen


def test_code_is_typed_on_the_terminal(hutch, on_terminal):
    terminal = on_terminal(hutch, "-")
    terminal.press(b"print(6 * 7)\n\x04")
    terminal.read_until(rb"42\r\n")
    assert terminal.wait() == 0
