"""A snippet behaves as `python3 main.py` would."""

import pytest


@pytest.mark.parametrize(
    "code, out",
    [
        (
            "import inspect\ndef f():\n    return 1\nprint(inspect.getsource(f))",
            "def f():\n    return 1\n\n",
        ),
        (
            "import __main__\nx = 3\nprint(__main__.x, __name__, __main__.__name__)",
            "3 __main__ __main__\n",
        ),
        (
            "import pickle\nclass A:\n    def __init__(s, n): s.n = n\n"
            "print(pickle.loads(pickle.dumps(A(4))).n)",
            "4\n",
        ),
        (
            "import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int = 1\n"
            "print(P(), vars(P()))",
            "P(x=1) {'x': 1}\n",
        ),
        (
            "from __future__ import annotations\nimport typing\ndef f(a: Unknown): ...\n"
            "print(f.__annotations__)",
            "{'a': 'Unknown'}\n",
        ),
        ("if __name__ == '__main__':\n    print('main')", "main\n"),
        ("import sys\nprint([n for n in dir() if not n.startswith('__')])", "['sys']\n"),
        (
            "import threading, queue\nq = queue.Queue()\n"
            "ts = [threading.Thread(target=q.put, args=(n,)) "
            "for n in range(8)]\n[t.start() for t in ts]\n[t.join() for t in ts]\n"
            "print(sorted(q.get() for _ in ts))",
            "[0, 1, 2, 3, 4, 5, 6, 7]\n",
        ),
        (
            "import asyncio\nasync def f(n):\n    await asyncio.sleep(0.01)\n    return n * n\n"
            "async def main():\n    print(await asyncio.gather(*map(f, range(4))))\n"
            "asyncio.run(main())",
            "[0, 1, 4, 9]\n",
        ),
        (
            "import subprocess\n"
            "print(subprocess.check_output(['sh', '-c', 'echo $HOME'], text=True))",
            "/home/sandbox\n\n",
        ),
        (
            "import subprocess, sys\nprint(subprocess.check_output([sys.executable, '-c', "
            "'import sys, numpy; print(sys.argv, numpy.__name__)'], text=True))",
            "['-c'] numpy\n\n",
        ),
        ("import atexit\natexit.register(print, 'bye')\nprint('hi')", "hi\nbye\n"),
        (
            "import signal, os\nsignal.signal(signal.SIGUSR1, lambda *_: print('caught'))\n"
            "os.kill(os.getpid(), signal.SIGUSR1)",
            "caught\n",
        ),
        ("def f(n): return n and f(n - 1)\nprint(f(900))", "0\n"),
        ("exec('y = 5')\nprint(y, eval('y + 1'))", "5 6\n"),
        ("# -*- coding: utf-8 -*-\r\nprint('crlf')\r\n", "crlf\n"),
        ("\ufeffprint('bom')", "bom\n"),
        (
            "import tempfile, os\nwith tempfile.TemporaryDirectory() as d:\n"
            "    open(d + '/a', 'w').close(); print(os.listdir(d))",
            "['a']\n",
        ),
        ("print(__file__ is not None, __spec__, __package__)", "True None None\n"),
    ],
)
def test_prints(daemon, code, out):
    shown = daemon.execute(code).ok()
    assert (shown["stdout"], shown["stderr"]) == (out, "")
    assert shown["exit_code"] == 0 and "files" not in shown


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(daemon, method):
    code = f"""
import multiprocessing as m
def square(n):
    return n * n
if __name__ == '__main__':
    m.set_start_method({method!r})
    with m.Pool(3) as pool:
        print(pool.map(square, range(6)))
"""
    shown = daemon.execute(code, timeout_s=40).ok()
    assert (shown["stdout"], shown["stderr"]) == ("[0, 1, 4, 9, 16, 25]\n", "")


def test_a_process_pool_of_futures(daemon):
    code = """
import concurrent.futures
def cube(n): return n ** 3
if __name__ == '__main__':
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        print(list(pool.map(cube, range(5))))
"""
    assert daemon.execute(code)["stdout"] == "[0, 1, 8, 27, 64]\n"


def test_shared_memory_and_locks(daemon):
    code = """
import multiprocessing as m
from multiprocessing import shared_memory
def add(value, lock, name):
    block = shared_memory.SharedMemory(name)
    for _ in range(100):
        with lock: value.value += 1
    block.buf[0] = 9; block.close()
if __name__ == '__main__':
    block = shared_memory.SharedMemory(create=True, size=16)
    value, lock = m.Value('i', 0), m.Lock()
    ps = [m.Process(target=add, args=(value, lock, block.name)) for _ in range(2)]
    [p.start() for p in ps]; [p.join() for p in ps]
    print(value.value, block.buf[0]); block.close(); block.unlink()
"""
    assert daemon.execute(code)["stdout"] == "200 9\n"


def test_a_traceback_shows_its_source(daemon):
    code = """def inner(row):
    return row['price'] / row['count']

def middle(rows):
    return [inner(row) for row in rows]

print('before')
middle([{'price': 3, 'count': 0}])
"""
    shown = daemon.execute(code).ok()
    assert shown["stdout"] == "before\n" and shown["exit_code"] == 1
    lines = shown["stderr"].splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == "ZeroDivisionError: division by zero"
    assert "line 8, in <module>" in lines[1] and lines[1].lstrip().startswith('File "')
    for text in ("middle([{'price': 3, 'count': 0}])", "return row['price'] / row['count']"):
        assert any(line.strip() == text for line in lines), text
    assert not any("runner" in line or "sitecustomize" in line for line in lines)


def test_a_syntax_error(daemon):
    shown = daemon.execute("print('a')\nx = (1,\n").ok()
    assert shown["stdout"] == "" and shown["exit_code"] == 1
    assert "SyntaxError: '(' was never closed" in shown["stderr"]
    assert "line 2" in shown["stderr"] and "x = (1," in shown["stderr"]


def test_an_error_in_a_thread(daemon):
    code = (
        "import threading\nt = threading.Thread(target=lambda: 1/0, name='worker')\n"
        "t.start(); t.join(); print('after')"
    )
    shown = daemon.execute(code).ok()
    assert shown["exit_code"] == 0 and shown["stdout"] == "after\n"
    assert "Exception in thread worker" in shown["stderr"]


def test_warnings_are_shown_with_their_line(daemon):
    code = "import warnings\nwarnings.warn('old way')"
    shown = daemon.execute(code).ok()
    assert (
        "UserWarning: old way" in shown["stderr"] and "warnings.warn('old way')" in shown["stderr"]
    )


def test_a_sent_module_wins_over_an_imported_one(daemon):
    from harness.client import upload

    files = [upload("queue.py", "mine = True\n"), upload("shapes.py", "x = 1\n")]
    assert (
        daemon.execute("import queue, shapes; print(queue.mine)", files=files)["stdout"] == "True\n"
    )


def test_the_program_does_not_see_its_own_source_among_its_files(daemon):
    code = """
import os
print(os.listdir('.'), os.path.dirname(os.path.abspath(__file__)) != os.getcwd())
"""
    shown = daemon.execute(code).ok()
    assert shown["stdout"] == "[] True\n" and "files" not in shown


def test_a_very_deep_recursion(daemon):
    shown = daemon.execute("def f(n): return f(n + 1)\nf(0)").ok()
    assert shown["exit_code"] == 1 and "RecursionError" in shown["stderr"]
