"""The snippets of tests/snippets, the kind that models write, over real HTTP.

Beside NN_name.py stands NN_name.json: {"files": [{"path", "content_b64" or "text"}], "timeout_s",
"expect": {"stdout" | "stdout_contains" | "stderr" | "stderr_contains" | "exit_code", "files":
[{"path", "type", "min_size", "check", "text", "pixels"}]}}.
"""

import base64
import json
import pathlib
import subprocess

import pytest
from harness import settings
from harness.client import strict_json, upload
from harness.expected_files import check_file

SNIPPETS = sorted((pathlib.Path(settings.ROOT) / "tests" / "snippets").glob("[0-9]*.py"))


def request_of(path):
    """The request of one snippet, and what is expected of its answer."""
    described = json.loads(path.with_suffix(".json").read_text())
    files = [
        entry if "content_b64" in entry else upload(entry["path"], entry["text"])
        for entry in described.get("files", [])
    ]
    body = {"code": path.read_text()}
    if files:
        body["files"] = files
    if "timeout_s" in described:
        body["timeout_s"] = described["timeout_s"]
    return body, described["expect"]


def as_list(value):
    return value if isinstance(value, list) else [value]


def check(shown, expect):
    story = f"stdout:\n{shown['stdout'][-1500:]}\nstderr:\n{shown['stderr'][-1500:]}"
    assert shown["exit_code"] == expect.get("exit_code", 0), story
    for stream in ("stdout", "stderr"):
        if stream in expect:
            assert shown[stream] == expect[stream], story
        for part in as_list(expect.get(f"{stream}_contains", [])):
            assert part in shown[stream], story
    if not any(key.startswith("stderr") for key in expect):
        assert shown["stderr"] == "", story
    returned = {entry["path"]: entry for entry in shown.get("files", [])}
    if "files" in expect:
        assert sorted(returned) == sorted(entry["path"] for entry in expect["files"]), story
    for wanted in expect.get("files", []):
        entry = returned[wanted["path"]]
        check_file(entry, base64.b64decode(entry["content_b64"], validate=True), wanted)


def test_there_are_enough():
    assert len(SNIPPETS) >= 20


@pytest.mark.parametrize("path", SNIPPETS, ids=lambda path: path.stem)
def test_snippet(daemon, path):
    body, expect = request_of(path)
    check(daemon.internal.request("POST", "/v1/execute", body).ok(), expect)


def test_through_curl(daemon):
    done = subprocess.run(
        ["curl", "-sS", "-d", '{"code":"print(2**32)"}', f"{daemon.internal.url}/v1/execute"],
        capture_output=True,
        timeout=30,
        check=True,
    )
    shown = strict_json(done.stdout)
    assert shown["stdout"] == "4294967296\n" and shown["exit_code"] == 0


@pytest.mark.parametrize("path", SNIPPETS[::4], ids=lambda path: path.stem)
def test_snippet_through_curl(daemon, tmp_path, path):
    body, expect = request_of(path)
    (tmp_path / "body.json").write_text(json.dumps(body))
    done = subprocess.run(
        [
            "curl",
            "-sS",
            "--data-binary",
            f"@{tmp_path}/body.json",
            "-w",
            "\\n%{http_code}",
            f"{daemon.internal.url}/v1/execute",
        ],
        capture_output=True,
        timeout=120,
        check=True,
    )
    answer, _, status = done.stdout.rpartition(b"\n")
    assert status == b"200", answer[:500]
    check(strict_json(answer), expect)
