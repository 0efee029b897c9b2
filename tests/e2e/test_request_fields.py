"""Every field of a request to /v1/execute: its default, its limit, its type, its error."""

import re

import pytest

MUST_BE = re.compile(r"[a-z_0-9\[\].]+ must be an? [a-z]+")


def refused(daemon, body, status=400):
    answer = daemon.internal.request("POST", "/v1/execute", body)
    assert answer.status == status, answer
    return answer.error


@pytest.mark.as_root  # with a waiver the answer says more
def test_the_first_example(daemon):
    answer = daemon.execute("print(2**32)")
    shown = answer.ok()
    assert list(shown) == ["sandbox_id", "stdout", "stderr", "exit_code", "duration_ms"]
    assert re.fullmatch(r"sandbox-[a-z2-7]{10}", shown["sandbox_id"])
    assert shown["stdout"] == "4294967296\n" and shown["stderr"] == "" and shown["exit_code"] == 0
    assert type(shown["duration_ms"]) is int and 0 <= shown["duration_ms"] < 10_000
    assert answer.headers["Content-Type"].split(";")[0] == "application/json"
    assert int(answer.headers["Content-Length"]) == len(answer.body)


def test_the_answer_byte_for_byte(daemon):
    body = daemon.execute("import sys; print('héllo <&>'); sys.stderr.write('w\\n')").body
    masked = re.sub(rb'"sandbox-[a-z2-7]{10}"', b'"sandbox-ID"', body)
    masked = re.sub(rb'"duration_ms":\d+', b'"duration_ms":0', masked)
    assert (
        masked.rstrip(b"\n")
        == (
            '{"sandbox_id":"sandbox-ID","stdout":"héllo <&>\\n","stderr":"w\\n",'
            '"exit_code":0,"duration_ms":0}'
        ).encode()
    )


def test_the_sandbox_id_differs_on_every_call(daemon):
    ids = {daemon.execute("pass")["sandbox_id"] for _ in range(8)}
    assert len(ids) == 8


def test_duration_is_the_time_of_the_code(daemon):
    shown = daemon.execute("import time; time.sleep(0.5)").ok()
    assert 500 <= shown["duration_ms"] < 1500


@pytest.mark.parametrize("body", [{}, {"code": ""}, {"language": "python"}])
def test_code_is_required(daemon, body):
    assert refused(daemon, body) == "code is required"


@pytest.mark.parametrize(
    "field, value",
    [
        ("code", 1),
        ("code", ["print(1)"]),
        ("code", {"a": 1}),
        ("code", True),
        ("language", 3),
        ("language", ["python"]),
        ("timeout_s", "5"),
        ("timeout_s", True),
        ("timeout_s", [5]),
        ("timeout_s", 1.5),
        ("files", "a.txt"),
        ("files", {"path": "a"}),
        ("report", "yes"),
        ("report", 1),
    ],
)
def test_a_wrong_type_names_the_field(daemon, field, value):
    message = refused(daemon, {"code": "print(1)", field: value})
    assert message.startswith(field) and MUST_BE.fullmatch(message), message


def test_an_entry_of_files_names_its_fault(daemon):
    for files in (["a"], [{"path": 1, "content_b64": ""}], [{"path": "a", "content_b64": 2}]):
        message = refused(daemon, {"code": "1", "files": files})
        assert "files" in message or "path" in message or "content_b64" in message, message
        assert "must be a" in message, message


@pytest.mark.parametrize("value", [-1, 61, 100, -(2**31), 2**31, 2**63, 2**64 + 1])
def test_timeout_out_of_range(daemon, value):
    assert refused(daemon, {"code": "1", "timeout_s": value}) == (
        "timeout_s must be between 1 and 60"
    )


@pytest.mark.parametrize("value", [0, 1, 60])
def test_timeout_at_its_edges(daemon, value):
    assert daemon.execute("print(1)", timeout_s=value)["stdout"] == "1\n"


@pytest.mark.slow
def test_timeout_absent_or_zero_is_twenty_seconds(daemon):
    shown = daemon.execute("while True: pass", timeout_s=0).ok()
    assert shown["stderr"] == "timed out after 20s" and shown["exit_code"] == -1
    assert 20_000 <= shown["duration_ms"] < 20_500


@pytest.mark.parametrize("language", ["ruby", "Python", "python3", "javascript", "bash"])
def test_other_languages(daemon, language):
    message = refused(daemon, {"code": "1", "language": language})
    assert message == f'unsupported language "{language}"'


def test_a_language_with_control_characters_stays_one_line_in_the_log(daemon):
    answer = daemon.internal.request(
        "POST", "/v1/execute", {"code": "1", "language": "ru\nby\x1b[2J"}
    )
    assert answer.status == 400 and answer.error.startswith('unsupported language "')
    assert b"\x1b" not in answer.body and b"\x1b" not in daemon.log_path.read_bytes()
    daemon.log_records()


def test_python_is_the_default_and_can_be_named(daemon):
    assert daemon.execute("print(1)", language="python")["stdout"] == "1\n"


def test_unknown_fields_are_ignored(daemon):
    shown = daemon.execute("print(1)", colour="blue", nested={"a": [1, {"b": None}]}).ok()
    assert shown["stdout"] == "1\n"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"not json",
        b'{"code":"print(1)"}x',
        b'{"code":"print(1)","code":"print(2)"}',
        b'{"code":"print(1)","timeout_s":NaN}',
        b'{"code":"print(1)","timeout_s":Infinity}',
        b'{"code":"\xff\xfe"}',
        b'{"code":"print(1)",}',
        b"{'code':'print(1)'}",
        b'{"code":"print(1)"/**/}',
        b'{"code":"print(1)","x":' + b"[" * 65 + b"]" * 65 + b"}",
        b'{"code":' + b"[" * 100_000,
        b'{"code":"print(\x01)"}',
        b'{"code":"a","files":[{"path":"a","path":"b","content_b64":""}]}',
    ],
)
def test_what_does_not_parse(daemon, body):
    assert refused(daemon, body) == "invalid JSON body"


@pytest.mark.parametrize("body", [b"[]", b'"print(1)"', b"1", b"null"])
def test_json_that_is_no_object(daemon, body):
    refused(daemon, body)


def test_depth_of_64_is_fine(daemon):
    # The object itself is the first level.
    body = b'{"code":"print(1)","x":' + b"[" * 63 + b"]" * 63 + b"}"
    assert daemon.internal.request("POST", "/v1/execute", body)["stdout"] == "1\n"


def test_a_nul_in_the_source_is_python_s_to_judge(daemon):
    shown = daemon.execute("print(1)\x00print(2)").ok()
    assert shown["exit_code"] == 1 and "null bytes" in shown["stderr"]


def test_unicode_source(daemon):
    shown = daemon.execute("größe = '日本語 🎉'\nprint(größe)").ok()
    assert shown["stdout"] == "日本語 🎉\n"


def test_report_asks_for_everything(daemon):
    shown = daemon.execute("print('ü')", report=True).ok()
    assert shown["stdout_bytes"] == 3 and shown["stderr_bytes"] == 0
    end = shown["end"]
    assert end["cause"] == "exited"
    assert 0 < end["memory_peak_bytes"] < 2**30 and 0 <= end["cpu_ms"] < 60_000
    plain = daemon.execute("print('ü')", report=False).ok()
    assert list(plain) == ["sandbox_id", "stdout", "stderr", "exit_code", "duration_ms"]


def test_large_source(daemon):
    code = "x = '" + "a" * 2_000_000 + "'\nprint(len(x))"
    assert daemon.execute(code)["stdout"] == "2000000\n"
