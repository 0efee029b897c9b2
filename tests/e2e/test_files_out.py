"""Files that a run leaves in its working directory: which come back, how, and which do not."""

import base64
import os

import pytest
from harness import host
from harness.client import upload
from harness.waiting import wait_until

MIB = 1 << 20


def test_a_written_file_comes_back(daemon):
    code = "open('out.txt','w').write('résult'); open('b.bin','wb').write(b'\\0')"
    answer = daemon.execute(code)
    assert answer.json["files"] == [
        {"path": "b.bin", "size": 1, "type": "application/octet-stream", "content_b64": "AA=="},
        {
            "path": "out.txt",
            "size": 7,
            "type": "text/plain",
            "content_b64": base64.b64encode("résult".encode()).decode(),
        },
    ]
    assert list(answer.json) == [
        "sandbox_id",
        "stdout",
        "stderr",
        "exit_code",
        "duration_ms",
        "files",
    ]


def test_no_file_no_key(daemon):
    assert "files" not in daemon.execute("print(1)").json


def test_order_is_by_path(daemon):
    names = ["z", "a/b", "a.txt", "a/a/a", "B", "ä", "a-b"]
    code = f"""
import os
for name in {names!r}:
    os.makedirs(os.path.dirname(name) or '.', exist_ok=True)
    open(name, 'w').write(name)
"""
    answer = daemon.execute(code)
    assert sorted(answer.paths(), key=str.encode) == answer.paths()
    assert set(answer.paths()) == set(names)
    for name in names:
        assert answer.file(name) == name.encode()


@pytest.mark.parametrize(
    "name, content, kind",
    [
        ("a.csv", b"a,b\n", "text/csv"),
        ("a.png", b"\x89PNG\r\n", "image/png"),
        ("a.jpg", b"\xff\xd8", "image/jpeg"),
        ("a.svg", b"<svg/>", "image/svg+xml"),
        ("a.pdf", b"%PDF", "application/pdf"),
        ("a.json", b"{}", "application/json"),
        ("a.html", b"<p>", "text/html"),
        ("a.zip", b"PK", "application/zip"),
        ("a.xlsx", b"PK", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        ("a.txt", b"x", "text/plain"),
        ("unknown", b"plain words\n", "text/plain"),
        ("unknown2", b"\0\1\2", "application/octet-stream"),
        ("empty", b"", "text/plain"),
    ],
)
def test_the_type_of_a_file(daemon, name, content, kind):
    entry = daemon.execute(f"open({name!r},'wb').write({content!r})").json["files"][0]
    assert entry["type"].split(";")[0] == kind


def test_all_bytes_survive(daemon):
    code = "import random; random.seed(7); open('r','wb').write(random.randbytes(3_000_000))"
    import random

    random.seed(7)
    assert daemon.execute(code).file("r") == random.randbytes(3_000_000)


def test_unchanged_input_does_not_come_back(daemon):
    code = """
import os
os.utime('same', (1, 1))
open('rewritten', 'w').write('same words')
os.chmod('mode', 0o600)
open('grown', 'a').write('!')
open('swapped', 'w').write('2')
os.rename('moved', 'there')
os.remove('gone')
"""
    inputs = {
        "same": "same words",
        "rewritten": "same words",
        "mode": "m",
        "grown": "g",
        "swapped": "1",
        "moved": "content",
        "gone": "bye",
    }
    answer = daemon.execute(code, files=[upload(name, text) for name, text in inputs.items()])
    assert answer["stderr"] == ""
    assert answer.paths() == ["grown", "swapped", "there"]
    assert answer.file("grown") == b"g!" and answer.file("swapped") == b"2"
    assert answer.json["files_deleted"] == ["gone", "moved"]


def test_an_input_replaced_by_another_kind(daemon):
    code = (
        "import os\nos.remove('a'); os.mkdir('a'); open('a/x','w').write('x')\n"
        "os.remove('b'); os.symlink('/etc/passwd','b')"
    )
    answer = daemon.execute(code, files=[upload("a", "1"), upload("b", "2")])
    assert answer.file("a/x") == b"x"
    assert b"root:" not in answer.body
    assert "a" in answer.json["files_deleted"]
    assert answer.omitted()["b"]["reason"] == "not_regular"


def test_caches_of_python_do_not_come_back(daemon):
    answer = daemon.execute(
        "import mod, os; print(mod.x); os.makedirs('d/__pycache__'); "
        "open('d/__pycache__/a.pyc','w').write('1'); open('d/keep','w').write('k')",
        files=[upload("mod.py", "x = 5\n")],
    )
    assert answer["stdout"] == "5\n" and answer.paths() == ["d/keep"]


def test_only_the_working_directory_comes_back(daemon):
    code = """
import os
for place in ('/tmp/a', os.path.expanduser('~/b'), '/dev/shm/c'):
    open(place, 'w').write('x')
os.makedirs(os.path.expanduser('~/.cache/x')); open(os.path.expanduser('~/.cache/x/y'), 'w').close()
os.mkdir('/tmp/elsewhere'); os.chdir('/tmp/elsewhere'); open('relative', 'w').write('x')
"""
    answer = daemon.execute(code)
    assert answer["stderr"] == "" and "files" not in answer.json, answer.json


def test_each_reason_for_an_omission(daemon):
    code = f"""
import os, socket
open('good', 'w').write('good')
with open('sparse', 'wb') as f: f.truncate(1 << 40)
with open('too_big', 'wb') as f: f.write(b'x' * {4 * MIB + 1})
os.mkfifo('fifo')
os.symlink('good', 'link')
os.symlink('nowhere', 'dangling')
socket.socket(socket.AF_UNIX).bind('socket')
open('secret', 'w').write('x'); os.chmod('secret', 0)
open(b'\\xff\\xfe', 'wb').write(b'n')
"""
    answer = daemon.execute(code)
    assert answer["stderr"] == "" and answer.paths() == ["good"]
    reasons = {path: entry["reason"] for path, entry in answer.omitted().items()}
    assert reasons.pop("\\xff\\xfe") == "name"
    assert reasons == {
        "sparse": "too_large",
        "too_big": "too_large",
        "fifo": "not_regular",
        "link": "not_regular",
        "dangling": "not_regular",
        "socket": "not_regular",
        "secret": "unreadable",
    }
    omitted = answer.omitted()
    assert omitted["too_big"]["size"] == 4 * MIB + 1 and omitted["sparse"]["size"] == 1 << 40
    for entry in omitted.values():
        assert list(entry) == ["path", "size", "reason"]


def test_a_locked_directory_is_told(daemon):
    code = "import os\nos.mkdir('d'); open('d/in','w').write('x'); os.chmod('d', 0)"
    answer = daemon.execute(code)
    assert answer.ok()["exit_code"] == 0
    assert [entry["reason"] for entry in answer.json["files_omitted"]] == ["unreadable"]


def test_the_total_of_all_files(daemon):
    code = f"for n in range(5): open(f'f{{n}}','wb').write(bytes([65+n]) * {4 * MIB})"
    answer = daemon.execute(code)
    assert answer.paths() == ["f0", "f1", "f2", "f3"]
    assert answer.json["files_omitted"] == [{"path": "f4", "size": 4 * MIB, "reason": "total"}]


def test_small_files_after_a_full_total(daemon):
    """A file that does not fit is named; a smaller one after it may still come or be named."""
    code = f"""
for n in range(3): open(f'a{{n}}','wb').write(b'x' * {4 * MIB})
open('b', 'wb').write(b'x' * {3 * MIB})
open('c', 'wb').write(b'x' * {2 * MIB})
open('d', 'w').write('small')
"""
    answer = daemon.execute(code)
    assert sum(entry["size"] for entry in answer.json["files"]) <= 16 * MIB
    named = set(answer.paths()) | set(answer.omitted())
    assert named == {"a0", "a1", "a2", "b", "c", "d"}
    assert answer.omitted()["c"]["reason"] == "total"


def test_the_number_of_files(own_daemon):
    here = own_daemon(sets={"limits.files_count": 10})
    answer = here.execute("for n in range(25): open(f'f{n:02}','w').write('x')")
    assert answer.paths() == [f"f{n:02}" for n in range(10)]
    assert {entry["reason"] for entry in answer.json["files_omitted"]} == {"count"}
    assert len(answer.json["files_omitted"]) <= 10


def test_the_limits_are_settings(own_daemon):
    here = own_daemon(sets={"limits.file_bytes": 1000, "limits.files_bytes": 1500})
    code = "for n, s in (('a',1000),('b',1001),('c',501),('d',500)): open(n,'wb').write(b'x'*s)"
    answer = here.execute(code)
    assert answer.paths() == ["a", "d"]
    reasons = {path: entry["reason"] for path, entry in answer.omitted().items()}
    assert reasons == {"b": "too_large", "c": "total"}


@pytest.mark.parametrize("ending", ["raise SystemExit(3)", "1/0", "os.kill(os.getpid(), 9)"])
def test_files_of_a_run_that_failed(daemon, ending):
    answer = daemon.execute(f"import os\nopen('f','w').write('kept')\n{ending}")
    assert answer["exit_code"] != 0 and answer.file("f") == b"kept"


def test_files_of_a_run_that_was_too_slow(daemon):
    code = "f = open('f','w'); f.write('kept'); f.flush()\nwhile True: pass"
    answer = daemon.execute(code, timeout_s=1)
    assert answer["exit_code"] == -1 and answer.file("f") == b"kept"


def test_odd_names(daemon):
    names = [
        "nl\nname",
        "tab\t",
        " ",
        "-rf",
        "..x",
        "a\\..\\b",
        "\x1b[2J",
        "\u202egnp.exe",
        'quo"te',
        "x" * 255,
        "日本",
    ]
    code = f"for name in {names!r}: open(name, 'w').write('n')"
    answer = daemon.execute(code)
    assert set(answer.paths()) == set(names)


def test_a_program_that_writes_on_while_files_are_read(daemon):
    """What runs on in the background is dead before the first file is read."""
    code = """
import os, time
if os.fork() == 0:
    os.setsid()
    while True:
        open('f', 'w').write('a' * 100000)
        try:
            os.remove('f'); os.symlink('/etc/passwd', 'f'); os.remove('f')
        except OSError:
            pass
time.sleep(0.2)
"""
    for _ in range(5):
        answer = daemon.execute(code)
        assert answer.status == 200 and b"root:" not in answer.body
        for entry in answer.json.get("files", []):
            data = base64.b64decode(entry["content_b64"])
            assert len(data) == entry["size"] and set(data) <= {ord("a")}


def test_sixteen_mebibytes_do_not_stay_in_the_server(daemon):
    code = f"for n in range(4): open(f'f{{n}}','wb').write({os.urandom(8)!r} * {MIB // 2})"
    for _ in range(2):
        daemon.execute(code).ok()
    daemon.wait_warm()
    before = host.resident_bytes(daemon.pid)
    for _ in range(8):
        daemon.execute(code).ok()
    # The allocator may keep what one such answer takes (16 MiB and their base64), not more.
    wait_until(
        lambda: host.resident_bytes(daemon.pid) - before < 64 * MIB,
        5,
        lambda: f"{before} bytes before, {host.resident_bytes(daemon.pid)} now",
    )
