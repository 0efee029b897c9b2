"""What a program writes and what comes back: both streams, every byte, and the cap."""

import re

import pytest
from harness import settings
from harness.client import one_mark_a_run

MIB = 1 << 20
DROPPED = re.compile(r"(\d[\d,_]*) bytes")


def dropped_bytes(text):
    """The number in the line that stands for what was dropped."""
    found = [int(re.sub(r"\D", "", number)) for number in DROPPED.findall(text)]
    assert len(found) == 1, f"{len(found)} marks in {text[:80]!r} ... {text[-80:]!r}"
    return found[0]


def test_streams_are_apart(daemon):
    shown = daemon.execute("import sys\nprint('out')\nprint('err', file=sys.stderr)").ok()
    assert shown["stdout"] == "out\n" and shown["stderr"] == "err\n"


def test_order_inside_a_stream(daemon):
    code = """
import os, subprocess, sys
for turn in range(50):
    print('py', turn, flush=True)
    subprocess.run(['echo', f'sh {turn}'])
"""
    lines = daemon.execute(code)["stdout"].splitlines()
    assert lines == [f"{who} {turn}" for turn in range(50) for who in ("py", "sh")]


def test_no_newline_is_added_or_taken(daemon):
    for text in ("", "a", "a\n", "\n", "\n\n", "a\r\n", "  a  "):
        code = f"import sys; sys.stdout.write({text!r}); sys.stderr.write({text!r})"
        shown = daemon.execute(code).ok()
        assert shown["stdout"] == text and shown["stderr"] == text


def test_bytes_that_are_not_text(daemon):
    raw = bytes(range(256)) + b"\xed\xa0\x80\xf0\x9f\x98" + b"end"
    answer = daemon.execute(f"import os; os.write(1, {raw!r})")
    assert one_mark_a_run(answer["stdout"]) == one_mark_a_run(raw.decode(errors="replace"))


def test_characters_are_not_cut_where_reads_end(daemon):
    code = """
import os, time
data = ('日本🎉é' * 3000).encode()
for start in range(0, len(data), 1009): os.write(1, data[start:start + 1009])
"""
    assert daemon.execute(code)["stdout"] == "日本🎉é" * 3000


def test_a_character_written_byte_by_byte(daemon):
    code = """
import os, time
for byte in '🎉'.encode():
    os.write(1, bytes([byte])); time.sleep(0.05)
"""
    assert daemon.execute(code)["stdout"] == "🎉"


def test_exactly_the_cap(daemon):
    shown = daemon.execute(f"import sys; sys.stdout.write('x' * {MIB})").ok()
    assert shown["stdout"] == "x" * MIB and "end" not in shown


def test_one_byte_over_the_cap(daemon):
    shown = daemon.execute(f"import sys; sys.stdout.write('a' + 'x' * {MIB - 1} + 'z')").ok()
    text = shown["stdout"]
    assert text.startswith("axxx") and text.endswith("xxxz")
    assert dropped_bytes(text) >= 1 and shown["stdout_bytes"] == MIB + 1
    kept = len(re.sub(r"\n[^\n]*bytes[^\n]*\n", "", text))
    assert kept + dropped_bytes(text) == MIB + 1


def test_head_and_tail_are_halves_of_the_cap(daemon):
    code = "import sys\nfor n in range(400_000): sys.stdout.write(f'{n:07}\\n')"
    text = daemon.execute(code)["stdout"]
    total = 400_000 * 8
    assert text.startswith("0000000\n0000001\n") and text.endswith("0399998\n0399999\n")
    mark = re.search(r"\n?[^\n]*bytes[^\n]*\n", text)
    head, tail = text[: mark.start()], text[mark.end() :]
    assert abs(len(head) - MIB // 2) <= 16 and abs(len(tail) - MIB // 2) <= 16
    assert dropped_bytes(text) == pytest.approx(total - len(head) - len(tail), abs=2)


def test_wide_characters_at_the_cut(daemon):
    text = daemon.execute("import sys; sys.stdout.write('日' * 700_000)")["stdout"]
    assert "\ufffd" not in text
    dropped = dropped_bytes(text)
    assert text.count("日") * 3 + dropped == 2_100_000


def test_each_stream_has_its_own_cap(daemon):
    code = "import sys\nsys.stderr.write('e' * 2_000_000)\nsys.stdout.write('o' * 100)"
    shown = daemon.execute(code).ok()
    assert shown["stdout"] == "o" * 100
    assert shown["stdout_bytes"] == 100 and shown["stderr_bytes"] == 2_000_000
    assert dropped_bytes(shown["stderr"]) > 0


def test_the_cap_is_a_setting(own_daemon):
    here = own_daemon(sets={"limits.stream_bytes": 4096})
    shown = here.execute("print('x' * 10_000)").ok()
    assert shown["stdout"].count("x") == 4096 - 1 and shown["stdout_bytes"] == 10_001


def test_talking_does_not_kill(daemon):
    code = "import sys\nfor _ in range(40): print('x' * 500_000)\nsys.exit(3)"
    shown = daemon.execute(code).ok()
    assert shown["exit_code"] == 3 and shown["stdout_bytes"] == 40 * 500_001


def test_a_timeout_after_too_much_output(daemon):
    code = "import sys\nsys.stderr.write('e' * 3_000_000)\nsys.stderr.flush()\nwhile True: pass"
    shown = daemon.execute(code, timeout_s=2).ok()
    assert shown["exit_code"] == -1 and shown["stderr"].endswith("\ntimed out after 2s")


def test_the_last_bytes_before_the_end_are_not_lost(daemon):
    code = "import os\nfor n in range(30): os.write(1, b'%02d' % n * 1000)\nos._exit(0)"
    expected = "".join(f"{n:02}" * 1000 for n in range(30))
    for _ in range(5):
        assert daemon.execute(code)["stdout"] == expected


def test_a_background_child_that_writes_at_the_end(daemon):
    code = """
import os, subprocess
subprocess.run("head -c 200000 /dev/zero | tr '\\\\0' x; (sleep 30 &)", shell=True)
"""
    answer = daemon.execute(code)
    assert answer["stdout"] == "x" * 200_000
    assert answer.seconds < 2 * settings.SLACK


def test_standard_input_is_empty(daemon):
    shown = daemon.execute("import sys; print(repr(sys.stdin.read()))\ninput()").ok()
    assert shown["stdout"] == "''\n" and "EOFError" in shown["stderr"]
    assert shown["exit_code"] == 1


def test_output_is_not_a_terminal(daemon):
    code = "import os, sys; print(sys.stdout.isatty(), os.isatty(2), sys.stdout.encoding)"
    assert daemon.execute(code)["stdout"] == "False False utf-8\n"
