"""Files that are sent with a run: where they land, what is refused and with which words."""

import base64
import hashlib
import os

import pytest
from harness.client import upload

ANY = "print(1)"


def test_the_documented_path(daemon):
    shown = daemon.execute(
        "print(open('data/input.csv').read())", files=[upload("data/input.csv", "a,b\n1,2\n")]
    ).ok()
    assert shown["stdout"] == "a,b\n1,2\n\n"


def test_files_are_there_before_the_code_and_belong_to_it(daemon):
    code = """
import os
print(sorted(os.listdir('.')), sorted(os.listdir('a')))
for path in ('top.txt', 'a/b/c.bin'):
    status = os.stat(path)
    print(path, status.st_uid == os.getuid(), status.st_size, os.access(path, os.W_OK))
open('a/b/new', 'w').write('x')
"""
    shown = daemon.execute(code, files=[upload("top.txt", "t"), upload("a/b/c.bin", b"\0\xff")])
    assert shown["stdout"].splitlines() == [
        "['a', 'top.txt'] ['b']",
        "top.txt True 1 True",
        "a/b/c.bin True 2 True",
    ]
    assert shown.paths() == ["a/b/new"]


@pytest.mark.parametrize("size", [0, 1, 3, 65_535, 65_536, 65_537, 5_000_000])
def test_any_bytes_of_any_size(daemon, size):
    data = os.urandom(size)
    code = "import hashlib; print(hashlib.sha256(open('f','rb').read()).hexdigest())"
    shown = daemon.execute(code, files=[upload("f", data)]).ok()
    assert shown["stdout"].strip() == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    "path",
    [
        "a/b/c.txt",
        "a/./b.txt",
        "./x",
        "a//b",
        "ünï/ç.txt",
        "sp ace.txt",
        "..hidden",
        "a..b",
        "...",
        "日本語.txt",
        "-rf",
        "a\\b",
        "n" * 255,
        "new\nline",
        "~",
        "$HOME",
        "a:b",
        "🎉/🎉",
    ],
)
def test_paths_that_stay_inside(daemon, path):
    shown = daemon.execute(f"print(open({path!r}).read())", files=[upload(path, "fine")]).ok()
    assert shown["stdout"] == "fine\n", shown


@pytest.mark.parametrize(
    "path",
    [
        "../etc/passwd",
        "/etc/passwd",
        "a/../../x",
        "./../x",
        "..",
        "a/..",
        "a/../b",
        "/",
        "/work/x",
        "../" * 40 + "x",
        "/proc/self/environ",
        "a/b/../../../x",
    ],
)
def test_paths_that_climb(daemon, path):
    answer = daemon.execute(ANY, files=[upload(path, "x")])
    assert answer.status == 502
    assert answer.error == (
        "the sandbox returned HTTP 400: file path escapes working directory: " f"'{path}'"
    )


@pytest.mark.parametrize(
    "path", ["", ".", "./", "x\0y", "n" * 256, "a/" * 100 + "x", "a/" * 3000 + "x", "é" * 128]
)
def test_paths_that_cannot_be_used(daemon, path):
    answer = daemon.execute(ANY, files=[upload(path, "x")])
    assert answer.status == 502, answer
    prefix = "the sandbox returned HTTP 400: "
    assert answer.error.startswith(prefix) and len(answer.error) > len(prefix)
    assert "escapes" not in answer.error


@pytest.mark.parametrize(
    "paths", [("a", "a/b"), ("d/x", "d"), ("x/y/z", "x/y"), ("a/b/c", "a"), ("./a", "a/b")]
)
def test_a_file_that_is_another_s_directory(daemon, paths):
    answer = daemon.execute(ANY, files=[upload(path, "x") for path in paths])
    assert answer.status == 502 and answer.error.startswith("the sandbox returned HTTP 400: ")
    assert any(path in answer.error for path in paths), answer.error


def test_the_same_path_twice(daemon):
    answer = daemon.execute(ANY, files=[upload("a", "1"), upload("./a", "2")])
    assert answer.status == 502 and "a" in answer.error


@pytest.mark.parametrize(
    "content", ["!!!", "QQ", "QQ=", "Q===", "QQ==QQ==", "QQ==\n", "Q Q=", "é", "-_-_"]
)
def test_invalid_base64_names_the_file(daemon, content):
    files = [upload("fine.txt", "x"), {"path": "data/broken.bin", "content_b64": content}]
    answer = daemon.execute(ANY, files=files)
    assert answer.status == 400, answer
    assert "data/broken.bin" in answer.error and "base64" in answer.error


def test_a_missing_part_of_an_entry(daemon):
    for entry in ({"path": "a"}, {"content_b64": ""}, {}):
        answer = daemon.execute(ANY, files=[entry])
        assert answer.status in (400, 502) and answer.error, entry


def test_no_files_is_an_empty_list(daemon):
    assert daemon.execute("import os; print(os.listdir())", files=[])["stdout"] == "[]\n"


def test_a_thousand_files(daemon):
    files = [upload(f"d{turn % 10}/f{turn}", str(turn)) for turn in range(1000)]
    code = "import os; print(sum(int(open(r+'/'+f).read()) for r,_,fs in os.walk('.') for f in fs))"
    assert daemon.execute(code, files=files)["stdout"] == f"{sum(range(1000))}\n"


def test_ten_thousand_files(daemon):
    """Either they are all there, or an error says how many are allowed; it is never slow."""
    files = [upload(f"f{turn}", "") for turn in range(10_000)]
    answer = daemon.execute("import os; print(len(os.listdir()))", files=files)
    assert answer.seconds < 10
    if answer.status == 200:
        assert answer["stdout"] == "10000\n"
    else:
        assert answer.status in (400, 413, 502) and any(c.isdigit() for c in answer.error)


def test_uploaded_modules_can_be_imported(daemon):
    files = [
        upload("shapes/__init__.py", "from .area import area\n"),
        upload("shapes/area.py", "def area(a, b):\n    return a * b\n"),
    ]
    shown = daemon.execute("from shapes import area; print(area(6, 7))", files=files)
    assert shown["stdout"] == "42\n"
    assert "files" not in shown.json


def test_base64_of_many_lengths(daemon):
    files = [upload(f"f{size:03}", bytes(range(size))) for size in range(200)]
    assert base64.b64decode(files[-1]["content_b64"]) == bytes(range(199))
    code = """
import os
print(all(open(n, 'rb').read() == bytes(range(int(n[1:]))) for n in os.listdir()))
"""
    assert daemon.execute(code, files=files)["stdout"] == "True\n"


def test_files_that_do_not_fit(own_daemon):
    here = own_daemon(sets={"limits.disk_bytes": 4 << 20, "limits.inodes": 256})
    here.execute(ANY, files=[upload("fits", bytes(2 << 20))]).ok()
    for files in (
        [upload("big", bytes(6 << 20))],
        [upload(f"part{turn}", bytes(1 << 20)) for turn in range(6)],
        [upload(f"f{turn}", "") for turn in range(600)],
    ):
        answer = here.execute(ANY, files=files)
        assert answer.status == 502, answer
        assert answer.error.startswith("the sandbox returned HTTP 4"), answer.error
    here.execute(ANY).ok()
    here.wait_warm()
