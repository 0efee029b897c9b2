"""Holds the answer of a snippet's run against what its .json file expects.

A snippet is NN_name.py with, where it needs one, NN_name.json beside it:
  files      request files: [{"path", "text" or "content_b64"}]
  timeout_s  seconds, 20 when left out
  expect     stdout (exact), stdout_contains [..], stderr (exact), stderr_contains [..], exit_code,
             files [..]: all that come back, no more
A file that is expected has `path` and any of: type, min_size, text (exact), text_contains [..],
check ("png", "xlsx", "zip", "csv", "json", "text": it opens as that), size_px [w, h],
members [..] (zip), cells {"Sheet!A1": value} (xlsx), json (the value),
pixels [{"rgb": [r, g, b], "tolerance": n, "min_share": 0..1, "max_share": 0..1}] (png).
What is left out defaults to: stderr empty, exit_code 0, files none.

`complaints` gives one sentence for each difference, none when all is as expected. Excel files and
pixels need openpyxl and Pillow where the check runs; without them that one check is passed by.
"""

import base64
import csv
import io
import json
import pathlib
import zipfile

HERE = pathlib.Path(__file__).parent


def names():
    return sorted(p.stem for p in HERE.glob("[0-9]*.py"))


def load(name):
    """(source, request files as {path: bytes}, timeout in seconds, expect)"""
    source = (HERE / f"{name}.py").read_text(encoding="utf-8")
    beside = HERE / f"{name}.json"
    wish = json.loads(beside.read_text(encoding="utf-8")) if beside.exists() else {}
    files = {
        f["path"]: f["text"].encode() if "text" in f else base64.b64decode(f["content_b64"])
        for f in wish.get("files", [])
    }
    return source, files, wish.get("timeout_s", 20), wish.get("expect", {})


def complaints(expect, *, stdout, stderr, exit_code, files):
    """`files`: {path: (type or None, bytes)} as the answer has them."""
    said = []
    if exit_code != expect.get("exit_code", 0):
        said.append(f"exit code {exit_code}, stderr {stderr[-500:]!r}")
    if "stdout" in expect and stdout != expect["stdout"]:
        said.append(f"stdout is {stdout!r}")
    said += [f"stdout has no {t!r}" for t in expect.get("stdout_contains", []) if t not in stdout]
    if "stderr_contains" in expect:
        said += [f"stderr has no {t!r}" for t in expect["stderr_contains"] if t not in stderr]
    elif stderr != expect.get("stderr", ""):
        said.append(f"stderr is {stderr!r}")
    wanted = {f["path"]: f for f in expect.get("files", [])}
    if sorted(wanted) != sorted(files):
        said.append(f"files are {sorted(files)}")
    for path in wanted.keys() & files.keys():
        said += [f"{path}: {s}" for s in _file_complaints(wanted[path], *files[path])]
    return said


def _file_complaints(wanted, mime_type, content):
    said = []
    if mime_type is not None and mime_type != wanted.get("type", mime_type):
        said.append(f"type {mime_type}")
    if len(content) < wanted.get("min_size", 0):
        said.append(f"only {len(content)} bytes")
    if "text" in wanted and content != wanted["text"].encode():
        said.append(f"content is {content[:500]!r}")
    said += [f"no {t!r}" for t in wanted.get("text_contains", []) if t.encode() not in content]
    if check := _CHECKS.get(wanted.get("check")):
        try:
            said += check(wanted, content)
        except ImportError:
            pass
        except Exception as error:
            said.append(f"does not open as {wanted['check']}: {error!r}")
    return said


def _png(wanted, content):
    if content[:8] != b"\x89PNG\r\n\x1a\n":
        return ["not a PNG"]
    size = [int.from_bytes(content[16:20], "big"), int.from_bytes(content[20:24], "big")]
    said = [] if size == wanted.get("size_px", size) else [f"size {size}"]
    if "pixels" in wanted:
        from PIL import Image

        raw = Image.open(io.BytesIO(content)).convert("RGB").tobytes()
        pixels = [raw[i : i + 3] for i in range(0, len(raw), 3)]
        for rule in wanted["pixels"]:
            near = rule.get("tolerance", 0)
            hits = sum(all(abs(a - b) <= near for a, b in zip(p, rule["rgb"])) for p in pixels)
            share = hits / len(pixels)
            if not rule.get("min_share", 0) <= share <= rule.get("max_share", 1):
                said.append(f"share of {rule['rgb']} is {share:.4f}")
    return said


def _xlsx(wanted, content):
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(content))
    said = []
    for place, value in wanted.get("cells", {}).items():
        sheet, _, cell = place.partition("!")
        if book[sheet][cell].value != value:
            said.append(f"{place} is {book[sheet][cell].value!r}")
    return said


def _zip(wanted, content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = sorted(archive.namelist())
        said = [f"{archive.testzip()} is damaged"] if archive.testzip() else []
    return said + ([] if members == wanted.get("members", members) else [f"members {members}"])


def _json(wanted, content):
    value = json.loads(content)
    return [] if value == wanted.get("json", value) else [f"value is {value!r}"]


def _csv(_wanted, content):
    widths = {len(row) for row in csv.reader(io.StringIO(content.decode()))}
    return [] if len(widths) == 1 else [f"rows of {sorted(widths)} columns"]


def _text(_wanted, content):
    content.decode()
    return []


_CHECKS = {"png": _png, "xlsx": _xlsx, "zip": _zip, "json": _json, "csv": _csv, "text": _text}
