"""What `hutch run` makes of answers, also of such as no honest server gives: from a server that
says what the test wants. Needs no root, no image and no sandbox."""

import base64
import json
import os
import signal
import socket
import threading
import time

import pytest
from harness import host, settings
from harness.fake_server import EXIT, HEAD, FakeServer, chunk, event, plain, stream
from harness.run_command import RunCommand, end_quietly
from harness.waiting import wait_until

FAILED = 125


@pytest.fixture
def place():
    command = RunCommand("")
    yield command
    command.end()


def run(place, answer, *given, **more):
    with FakeServer(answer) as server:
        place.url = server.url
        done = place.run(*(given or ("-c", "1")), **more)
        place.requests = server.requests
        return done


def exit_event(code, cause="exited", **more):
    return event("exit", {"exit_code": code, "end": {"cause": cause, "cpu_ms": 1}, **more})


def file_event(path, content=b"hostile"):
    return event("file", {"path": path, "content_b64": base64.b64encode(content).decode()})


# --- the request


def test_the_request_says_what_was_typed(place):
    (place.place / "in").write_bytes(b"\x00\xff")
    given = ["--timeout", "7", "--image", "python", "--in", "in:a/b", "x", "--", "-y"]
    run(place, stream(EXIT), "-c", "print(1)", *given)
    head, body = place.requests[0]
    assert head.startswith("POST /v1/execute HTTP/1.1\r\n") and "Accept: text/event-stream" in head
    assert json.loads(body) == {
        "code": "print(1)",
        "timeout_s": 7,
        "image": "python",
        "args": ["x", "-y"],
        "files": [{"path": "a/b", "content_b64": "AP8="}],
        "report": True,
    }


def test_a_key_does_not_go_to_the_internal_address(place):
    run(place, stream(EXIT), environment={"HUTCH_API_KEY": "secret-key"})
    assert "secret-key" not in place.requests[0][0]


# --- streams


def test_every_event_has_its_meaning(place):
    answer = stream(
        event("start", {"sandbox_id": "sandbox-1"}),
        event("stdout", {"text": "é\u2028\n"}),
        b": still running\n\n",
        event("stderr", {"b64": base64.b64encode(b"\xff").decode()}),
        event("something-new", {"x": 1}),
        event("stdout", {"b64": "AAE="}),
        exit_event(7),
    )
    done = run(place, answer)
    assert (done.code, done.out, done.err) == (7, "é\u2028\n".encode() + b"\x00\x01", b"\xff")


def test_events_may_be_cut_anywhere(place):
    text = event("stdout", {"text": "one\n"}) + event("stdout", {"text": "two\n"}) + EXIT
    for size in (1, 7, 100):
        pieces = [chunk(text[at : at + size]) for at in range(0, len(text), size)]
        done = run(place, HEAD + b"".join(pieces) + b"0\r\n\r\n")
        assert (done.code, done.out) == (0, b"one\ntwo\n")


@pytest.mark.parametrize(
    "end, code",
    [
        (exit_event(-1, "timeout"), 124),
        (exit_event(137, "memory"), 137),
        (exit_event(139, "signaled"), 139),
        (exit_event(1, "disk"), 1),
        (event("exit", {"exit_code": 5}), 5),
        (exit_event(3, "a cause of tomorrow"), 3),
    ],
)
def test_the_status_follows_the_end(place, end, code):
    assert run(place, stream(end)).code == code


def test_the_line_about_a_deadline_gets_its_end(place):
    late = exit_event(-1, "timeout")
    assert run(place, stream(event("stderr", {"text": "timed out after 2s"}), late)).words == (
        "timed out after 2s\n"
    )


def test_limits_that_an_operator_waives_are_not_the_caller_s_concern(place):
    end = event("exit", {"exit_code": 0, "end": {"cause": "exited", "waived": ["memory", "cpus"]}})
    assert run(place, stream(end)).err == b""


@pytest.mark.parametrize(
    "answer, words",
    [
        (stream(event("error", {"error": "the sandbox was lost"})), "the sandbox was lost"),
        (stream(event("error", {})), "the run was lost"),
        (stream(event("stdout", {"text": "x"})), "stopped before it told how the run ended"),
        (HEAD + chunk(event("start", {})), "closed the connection before the end of its answer"),
        (HEAD + chunk(EXIT[:-1]) + b"0\r\n\r\n", "stopped before it told how the run ended"),
        (stream(b"data: {}\n\n", event("exit", {"end": {}})), "did not tell how the program ended"),
        (stream(event("exit", "no JSON")), "is not the JSON object it should be"),
        (stream(event("stdout", "[1]")), "is not the JSON object it should be"),
        (stream(event("stdout", {"b64": "%"})), "output that is not base64"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "is not the JSON object it should be"),
        (b"220 mail.example ESMTP\r\n", "is not HTTP"),
        (b"", "closed the connection before the end of its answer"),
        (plain(503, {"error": "no sandbox is available"}), "hutch: no sandbox is available\n"),
        (plain(400, {"error": "code is bad\x1b[2J"}), "hutch: code is bad\\x1b[2J\n"),
        (plain(404, {"error": "not found"}), "is it the internal address of a Hutch server?"),
        (plain(500, "text"), "answers 500 to a run"),
        (plain(302, {}), "answers 302 to a run"),
    ],
)
def test_no_truthful_end_is_125_and_one_sentence(place, answer, words):
    done = run(place, answer)
    assert done.code == FAILED and words in done.words
    assert done.words.startswith("hutch: ") and done.words.count("\n") == 1


def test_what_came_before_a_failure_is_shown(place):
    lost = event("error", {"error": "lost"})
    shown = [event("stdout", {"text": "kept"}), event("stderr", {"text": "half"})]
    done = run(place, stream(*shown, lost))
    assert (done.code, done.out, done.words) == (FAILED, b"kept", "half\nhutch: lost\n")


def test_a_server_that_does_not_stream(place):
    answer = {"stdout": "out\n", "stderr": "err\n", "exit_code": 4, "end": {"cause": "exited"}}
    done = run(place, plain(200, answer))
    assert (done.code, done.out, done.err) == (4, b"out\n", b"err\n")


def test_json_is_what_the_server_said(place):
    answer = {"stdout": "o", "stderr": "e", "exit_code": 4, "end": {"cause": "exited"}}
    done = run(place, plain(200, answer), "--json", "-c", "1")
    assert done.code == 4 and json.loads(done.out) == answer and done.err == b""
    assert "Accept: application/json" in place.requests[0][0]
    bad = run(place, plain(503, {"error": "busy"}), "--json", "-c", "1")
    assert (bad.code, bad.out, bad.err) == (FAILED, b"", b"hutch: busy\n")


# --- files


HOSTILE = [
    "/etc/hutch-hostile",
    "../outside",
    "a/../../outside",
    "..",
    "",
    "a\0b",
    "x" * 300,
    "d/" * 3000 + "x",
]


def test_names_that_lead_out_are_refused_and_the_rest_is_written(place):
    events = [file_event(name) for name in HOSTILE] + [file_event("fine", b"kept"), EXIT]
    done = run(place, stream(*events), "-c", "1", "--out", "out/deep")
    assert done.code == FAILED and done.out == b""
    assert done.words.count("a file was not written") == len(HOSTILE)
    assert done.words.endswith("hutch: 1 file (4 bytes) written to out/deep\n")
    assert not os.path.exists("/etc/hutch-hostile")
    found = [str(path.relative_to(place.place)) for path in place.place.rglob("*")]
    assert sorted(found) == ["home", "out", "out/deep", "out/deep/fine"]


def test_links_in_the_directory_are_not_followed(place):
    outside = place.place / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    out = place.place / "out"
    out.mkdir()
    (out / "dir").symlink_to(outside)
    (out / "file").symlink_to(outside / "kept")
    place.give()
    done = run(
        place, stream(file_event("dir/kept"), file_event("file"), EXIT), "-c", "1", "--out", "out"
    )
    assert done.code == FAILED and "dir is there already, and is no directory" in done.words
    assert (outside / "kept").read_text() == "kept" and len(list(outside.iterdir())) == 1
    assert not (out / "file").is_symlink() and (out / "file").read_bytes() == b"hostile"


def test_names_are_shown_without_what_a_terminal_obeys(place):
    names = ["../\x1b]0;x\x07", "../\u202egnp", "../a\nhutch: b"]
    omitted = [{"path": "\x9b2J\r", "size": 1, "reason": "\x1b[1m"}]
    end = exit_event(0, files_omitted=omitted, files_omitted_count=30)
    done = run(place, stream(*map(file_event, names), end), "-c", "1", "--out", "o")
    assert not {c for c in done.words if ord(c) < 32 and c != "\n"}, done.words
    assert "\u202e" not in done.words and "\x9b" not in done.words
    assert done.words.count("\n") == 6 and "hutch: 29 more did not come back\n" in done.words


def test_a_file_in_the_way_is_replaced_whole(place):
    (place.place / "kept").write_bytes(b"old" * 1000)
    place.give()
    with open(place.place / "kept", "rb") as reader:
        done = run(place, stream(file_event("kept", b"new"), EXIT), "-c", "1", "--out", ".")
        assert done.code == 0 and reader.read() == b"old" * 1000
    assert (place.place / "kept").read_bytes() == b"new"
    assert sorted(path.name for path in place.place.iterdir()) == ["home", "kept"]


def test_files_that_nobody_asked_for_are_not_written(place):
    done = run(place, stream(file_event("a"), EXIT))
    assert (done.code, done.err) == (0, b"")  # a hint is for a terminal
    assert [path.name for path in place.place.iterdir()] == ["home"]


# --- leaving


def test_the_server_is_told_and_waited_for(place):
    """The command ends when the server has let go of the connection, not before."""
    told, released = threading.Event(), threading.Event()

    def answer(link, _body):
        link.sendall(HEAD + chunk(event("stdout", {"text": "begun\n"})))
        assert link.recv(1) == b""
        told.set()
        assert released.wait(30)

    with FakeServer(answer) as server:
        place.url = server.url
        process = place.start("-c", "1")
        try:
            assert process.stdout.readline() == b"begun\n"
            process.send_signal(signal.SIGINT)
            assert told.wait(20 * settings.SLACK)
            assert process.poll() is None
            released.set()
            assert process.wait(20 * settings.SLACK) == 130
        finally:
            released.set()
            end_quietly(process)


def test_a_second_signal_does_not_wait(place):
    released = threading.Event()

    def answer(link, _body):
        link.sendall(HEAD + chunk(event("stdout", {"text": "begun\n"})))
        assert link.recv(1) == b""
        process.send_signal(signal.SIGINT)
        assert released.wait(30)

    with FakeServer(answer) as server:
        place.url = server.url
        process = place.start("-c", "1")
        try:
            assert process.stdout.readline() == b"begun\n"
            process.send_signal(signal.SIGINT)
            assert process.wait(8 * settings.SLACK) == 130
        finally:
            released.set()
            end_quietly(process)


def takes_signals(pid):
    """The command itself, and not a shell before it that blocks them for a moment."""
    fields = host.status_fields(pid)
    blocked = int(fields.get("SigBlk", "0"), 16)
    return fields.get("Name") == "hutch" and blocked >> (signal.SIGTERM - 1) & 1


def test_waiting_for_code_can_be_interrupted(place):
    process = place.start("-")
    try:
        process.stdin.write(b"print(")
        process.stdin.flush()
        wait_until(lambda: takes_signals(process.pid), 20, "it has not begun")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20 * settings.SLACK) == 143
    finally:
        end_quietly(process)


def test_an_address_that_nobody_answers_at_takes_five_seconds(place):
    """A listener whose line is full drops what comes, as a firewall would."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        waiting = [socket.socket() for _ in range(3)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(address)
        place.url = f"http://127.0.0.1:{address[1]}"
        started = time.monotonic()
        done = place.run("-c", "1")
        for one in waiting:
            one.close()
    assert done.code == FAILED and "cannot reach" in done.words and "timed out" in done.words
    assert 4 < time.monotonic() - started < 8 * settings.SLACK
