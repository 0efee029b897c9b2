"""The warm runner: a program cannot tell it from `python3 main.py`, and nothing comes before it."""

import os
import re
import time

import pytest
from programs import PROGRAMS, SHADOWED
from stage import Stage, WarmProcess

# Libraries to import before each program; what they bring with them is listed below.
IMPORTS = [name for name in os.environ.get("HUTCH_TEST_IMPORTS", "").split(",") if name]

# A list of loaded extension modules after a crash; filters for their own warnings; BLAS threads.
BROUGHT_BY_LIBRARIES = {"segfault_faulthandler", "warning_filters", "threads"}


def encoded(source):
    return source if isinstance(source, bytes) else source.encode()


def without_addresses(ended):
    """Addresses and process numbers differ between two runs of the same interpreter."""
    out, err, status = ended.seen()
    masks = [(rb"0x[0-9a-f]{6,}", b"0xADDRESS"), (rb"(?<=SpawnProcess-)\d+", b"N")]
    masks += [(rb"\b\d{14,15}\b", b"IDENT"), (rb"(?m)^Current thread.*$", b"Current thread")]
    for pattern, mask in masks:
        out, err = re.sub(pattern, mask, out), re.sub(pattern, mask, err)
    return out, err, status


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_as_plain(interpreter, name):
    if IMPORTS and name in BROUGHT_BY_LIBRARIES:
        pytest.skip("the libraries in HUTCH_TEST_IMPORTS show here")
    stage = Stage(interpreter)
    plain = stage.plain(encoded(PROGRAMS[name]))
    warm = stage.warm(encoded(PROGRAMS[name]), imports=IMPORTS)
    assert without_addresses(warm) == without_addresses(plain)
    assert warm.files == plain.files


@pytest.mark.parametrize("name", SHADOWED)
def test_own_files_come_first(interpreter, name):
    files, source = SHADOWED[name]
    stage = Stage(interpreter, files=files)
    imports = ["queue", "statistics", *IMPORTS]
    warm = stage.warm(source.encode(), imports=imports)
    assert without_addresses(warm) == without_addresses(stage.plain(source.encode()))


ARGUMENTS = ["-v", "", "two words", "é😀", "--x=$HOME", "-", "a\nb"]


@pytest.mark.parametrize(
    "source",
    [
        "import sys\nprint(sys.argv, sys.orig_argv)\n",
        "import argparse\n"
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('-v', action='store_true')\n"
        "parser.add_argument('rest', nargs='*')\n"
        "print(parser.parse_known_args())\n"
        "parser.parse_args(['--help'])\n",
        "import multiprocessing as m, sys\n"
        "def show(q): q.put(sys.argv)\n"
        "if __name__ == '__main__':\n"
        "    m.set_start_method('spawn')\n"
        "    q = m.Queue(); p = m.Process(target=show, args=(q,)); p.start()\n"
        "    print(q.get()); p.join()\n",
    ],
    ids=["as_lists", "argparse", "in_a_spawned_process"],
)
@pytest.mark.parametrize("arguments", [[], ARGUMENTS, ["x" * 128] * 1024], ids=["0", "7", "1024"])
def test_arguments_are_those_of_a_plain_run(interpreter, source, arguments):
    stage = Stage(interpreter)
    assert stage.warm(source.encode(), arguments).seen() == (
        stage.plain(source.encode(), arguments).seen()
    )


def test_the_runner_imports_nothing_of_the_program(interpreter):
    (
        "Every module of the standard library, planted: none is run before the "
        "program's first line."
    )
    import sys

    planted = b"import os\nos.write(2, b'planted\\n')\n"
    files = {f"{name}.py": planted for name in sys.stdlib_module_names if not name.startswith("_")}
    stage = Stage(interpreter, files=files)
    warm = stage.warm(b"import os\nos.write(1, b'first\\n')\nos._exit(0)\n", imports=IMPORTS)
    assert (warm.stdout, warm.stderr, warm.status) == (b"first\n", b"", 0)


def test_modules_are_those_of_a_plain_run_and_the_preimported(interpreter):
    source = b"import sys\nprint(*sorted(sys.modules))\n"
    stage = Stage(interpreter)
    plain, warm = stage.plain(source).stdout.split(), stage.warm(source).stdout.split()
    assert set(plain) - set(warm) <= {b"sitecustomize", b"apport_python_hook"}
    assert b"sitecustomize" not in warm
    assert b"traceback" in warm


def test_no_frame_of_the_runner_is_left(interpreter):
    source = (
        b"import gc, types\n"
        b"print([f for f in gc.get_objects() if isinstance(f, types.FrameType)])\n"
    )
    warm = Stage(interpreter).warm(source)
    assert b"sitecustomize" not in warm.stdout and warm.status == 0


def test_imported_libraries_leave_the_environment_alone(interpreter):
    source = (
        b"import os\n"
        b"print(sorted(os.environ), flush=True)\n"
        b"os.system('env | grep -c PYTHON')\n"
    )
    warm = Stage(interpreter).warm(source, imports=IMPORTS)
    assert b"PYTHONPATH" not in warm.stdout and warm.stdout.endswith(b"1\n")  # PYTHONHASHSEED


@pytest.mark.parametrize(
    "sent", [b"", b"\x05", b"\x05\0\0\0ab\0", b"\0\0\0\0\x05\0\0\0\0\0\0\0abc"]
)
def test_end_of_file_before_the_program_is_silent(interpreter, tmp_path, sent):
    with WarmProcess(Stage(interpreter), str(tmp_path), []) as warm:
        assert warm.wait_ready()
        warm.socket.sendall(sent)
        warm.socket.close()
        assert warm.process.communicate(timeout=30) == (b"", b"")
        assert warm.process.returncode == 0


def test_a_library_that_is_missing_is_named(interpreter, tmp_path):
    with WarmProcess(Stage(interpreter), str(tmp_path), ["json", "no_such_library"]) as warm:
        assert not warm.wait_ready()
        out, err = warm.process.communicate(timeout=30)
    assert (out, warm.process.returncode) == (b"", 70)
    expected = (
        b"cannot import no_such_library: ModuleNotFoundError: No module named " b"'no_such_library'"
    )
    assert err == b"hutch: " + expected + b"\n"


def test_a_program_of_16_mebibytes_arrives_whole(interpreter):
    source = (
        b"x = 1\n"
        + b"# 0123456789 abcdef\n" * 800_000
        + (b"import os\n" b"print(os.path.getsize(__file__))\n")
    )
    warm = Stage(interpreter).warm(source)
    assert warm.stdout == b"%d\n" % len(source)


def test_the_file_does_nothing_elsewhere(interpreter):
    stage = Stage(interpreter, environment={"PYTHONPATH": "/opt/hutch"})
    ended = stage.plain(b"import sys\nprint('/opt/hutch' in sys.path)\n")
    assert (ended.stdout, ended.stderr, ended.status) == (b"True\n", b"", 0)


BUSY = {
    "spin": "while True: pass",
    "sleep": "import time\ntime.sleep(60)",
    "join": (
        "import threading, time\n"
        "t = threading.Thread(target=time.sleep, args=(60,))\n"
        "t.start()\n"
        "t.join()"
    ),
    "main_ended": "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()",
    "child": (
        "import subprocess\n"
        "subprocess.run(['sleep', '60'], stdout=subprocess.DEVNULL, "
        "stderr=subprocess.DEVNULL)"
    ),
    "pipe": "import os, sys\nr, w = os.pipe()\nsys.stdin = os.fdopen(r)\ninput()",
    "read": "import os\nr, w = os.pipe()\nos.read(r, 1)",
    "asyncio": "import asyncio\nasyncio.run(asyncio.sleep(60))",
    "swallows": "import time\nwhile True:\n    try: time.sleep(60)\n    except BaseException: pass",
    "lock": "import threading\nl = threading.Lock()\nl.acquire(); l.acquire()",
    "executor": (
        "from concurrent.futures import ThreadPoolExecutor as E\n"
        "import time\n"
        "with E(2) as e: e.submit(time.sleep, 60)"
    ),
    "replaced_stdout": (
        "import io, sys, time\n"
        "sys.stdout = io.TextIOWrapper(open(1, 'wb', closefd=False))\n"
        "print('own')\n"
        "time.sleep(60)"
    ),
    "broken_stdout": "import sys, time\nsys.stdout = None\ndel sys.stderr\ntime.sleep(60)",
    "raising_stdout": (
        "import sys, time\n"
        "class S:\n"
        "    def flush(self): raise RuntimeError\n"
        "sys.stdout = S()\n"
        "time.sleep(60)"
    ),
    "redirected": (
        "import contextlib, io, time\n"
        "with contextlib.redirect_stdout(io.StringIO()): time.sleep(60)"
    ),
    "pool": (
        "import multiprocessing as mp, time\n"
        "if __name__ == '__main__':\n"
        "    with mp.get_context('fork').Pool(1) as p: p.map(time.sleep, [3])"
    ),
}


@pytest.mark.parametrize("name", BUSY)
def test_deadline_brings_out_what_was_printed(interpreter, name):
    marker = "import os\nprint('buffered', end=' text')\nos.write(2, b'ready')\n"

    def deadline(warm):
        assert os.read(warm.process.stderr.fileno(), 5) == b"ready"
        await_blocked(warm.pid(), spinning=name == "spin")
        os.kill(warm.pid(), 64)

    warm = Stage(interpreter).warm((marker + BUSY[name]).encode(), before_end=deadline)
    own = b"own\n" if name == "replaced_stdout" else b""
    assert sorted([warm.stdout]) in ([b"buffered text" + own], [own + b"buffered text"])
    assert (warm.stderr, warm.status) == (b"", 0)


def await_blocked(pid, *, spinning):
    """Returns once the main thread waits in the kernel; a spinning one is where it will stay."""
    limit = time.monotonic() + 30
    calm = 0
    while not spinning and calm < 20:
        assert time.monotonic() < limit
        with open(f"/proc/{pid}/stat") as stat:
            calm = calm + 1 if stat.read().rsplit(")", 1)[1].split()[0] == "S" else 0
        os.sched_yield()


def test_deadline_in_the_middle_of_a_blocked_write(interpreter):
    (
        "The pipe is full and the main thread waits in write(2): the rest "
        "still comes once it drains."
    )
    source = (
        b"import sys, os\n"
        b"os.write(2, b'ready')\n"
        b"sys.stdout.write('x' * 200_000 + '\\n')\n"
        b"print('end')\n"
        b"while True: pass\n"
    )

    def deadline(warm):
        assert os.read(warm.process.stderr.fileno(), 5) == b"ready"
        await_blocked(warm.pid(), spinning=False)
        os.kill(warm.pid(), 64)

    warm = Stage(interpreter).warm(source, before_end=deadline)
    assert warm.stdout.startswith(b"x" * 200_000) and warm.status == 0


def test_deadline_does_not_reach_an_executed_child(interpreter):
    source = (
        b"import os\n"
        b"os.write(2, open('/proc/self/status', 'rb').read())\n"
        b"os.execvp('cat', ['cat', '/proc/self/status'])\n"
    )
    warm = Stage(interpreter).warm(source)
    caught = [
        int(re.search(rb"SigCgt:\s*(\w+)", s)[1], 16) >> 63 for s in (warm.stderr, warm.stdout)
    ]
    assert caught == [1, 0]


def test_a_program_that_cannot_be_written_is_said(interpreter, tmp_path):
    """/code does not take the file here: its name belongs to a directory."""
    with WarmProcess(Stage(interpreter), str(tmp_path), []) as warm:
        assert warm.wait_ready()
        os.mkdir(f"/proc/{warm.pid()}/root/code/main.py")
        warm.send(b"print(1)\n")
        out, err = warm.process.communicate(timeout=30)
    assert (out, err) == (b"", b"hutch: cannot write the program: File exists\n")
    assert warm.process.returncode == 71
