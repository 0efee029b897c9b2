"""The snippets of tests/snippets, the kind that models write, sent as users do: through curl."""

import base64
import importlib.util
import json
import subprocess

import pytest
from harness import settings
from harness.client import strict_json, upload

_FOLDER = settings.ROOT / "tests" / "snippets"


def _load_check():
    described = importlib.util.spec_from_file_location("snippet_check", _FOLDER / "check.py")
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    return module


check = _load_check()


def request_of(name):
    """The request of one snippet, and what is expected of its answer."""
    source, files, timeout_s, expect = check.load(name)
    body = {"code": source, "timeout_s": timeout_s}
    if files:
        body["files"] = [upload(path, content) for path, content in files.items()]
    return body, expect


def judge(shown, expect):
    files = {
        entry["path"]: (entry["type"], base64.b64decode(entry["content_b64"], validate=True))
        for entry in shown.get("files", [])
    }
    said = check.complaints(
        expect,
        stdout=shown["stdout"],
        stderr=shown["stderr"],
        exit_code=shown["exit_code"],
        files=files,
    )
    assert not said, "\n".join(said)


def test_there_are_enough():
    assert len(check.names()) >= 20


def test_the_first_example(daemon):
    done = subprocess.run(
        ["curl", "-sS", "-d", '{"code":"print(2**32)"}', f"{daemon.internal.url}/v1/execute"],
        capture_output=True,
        timeout=30,
        check=True,
    )
    shown = strict_json(done.stdout)
    assert shown["stdout"] == "4294967296\n" and shown["exit_code"] == 0


@pytest.mark.parametrize("name", check.names())
def test_snippet(daemon, tmp_path, name):
    body, expect = request_of(name)
    (tmp_path / "body.json").write_text(json.dumps(body))
    url = f"{daemon.internal.url}/v1/execute"
    command = ["curl", "-sS", "--data-binary", f"@{tmp_path}/body.json", "-w", "\\n%{http_code}"]
    done = subprocess.run([*command, url], capture_output=True, timeout=120, check=True)
    answer, _, status = done.stdout.rpartition(b"\n")
    assert status == b"200", answer[:500]
    judge(strict_json(answer), expect)
