"""Small programs whose every visible effect must be the same in a plain and in a warm run."""

PROGRAMS = {
    "hello": 'print("hello")',
    "empty": "",
    "only_comment": "# nothing",
    "no_newline_at_end": "print(1)",
    "crlf": b"x = 1\r\nif x:\r\n    print('crlf')\r\nraise KeyError(x)\r\n",
    "bom": b"\xef\xbb\xbfprint('bom')\n1/0\n",
    "nul_byte": b"print(1)\nprint('a\x00b')\n",
    "not_utf8": b"print('\xff')\n",
    "cookie_latin1": b"# -*- coding: latin-1 -*-\nprint(ascii('\xe9'))\n1/0 # \xe9\n",
    "cookie_unknown": b"# coding: klingon\nprint(1)\n",
    "trailing_backslash": "print(1)\nx = 1 + \\",
    "syntax_error": "print('before')\nif True print(1)\n",
    "indentation_error": "def f():\nprint(1)\n",
    "tab_error": "if 1:\n        a = 1\n\tb = 2\n",
    "unclosed_bracket": "print('a'\nx = (1,\n",
    "unterminated_string": "print('a)\n",
    "future_late": "x = 1\nfrom __future__ import annotations\n",
    "future": (
        "from __future__ import annotations\n"
        "def f(x: Nowhere): ...\n"
        "print(f.__annotations__)\n"
    ),
    "main_guard": "def main():\n    print(__name__)\nif __name__ == '__main__':\n    main()\n",
    "module_attributes": (
        "import sys\nprint(__name__, __doc__, __package__, __spec__, __file__, __builtins__,"
        " type(__loader__), __loader__.name, __loader__.path, sorted(globals()))\n"
    ),
    "argv": "import sys\nprint(sys.argv, len(sys.orig_argv))\n",
    "three_deep": (
        "def inner(x):\n    return 1 / x\n\n\ndef middle(x):\n    return inner(x) + 1\n\n\n"
        "def outer():\n    return [middle(y) for y in (1, 0)]\n\n\nouter()\n"
    ),
    "chained": "try:\n    {}['a']\nexcept KeyError as e:\n    raise ValueError('bad') from e\n",
    "context": "try:\n    1/0\nexcept ZeroDivisionError:\n    open('/nowhere/x')\n",
    "from_none": "try:\n    1/0\nexcept ZeroDivisionError:\n    raise ValueError('x') from None\n",
    "note": "e = ValueError('a')\ne.add_note('look here')\nraise e\n",
    "group": "raise ExceptionGroup('many', [ValueError(1), TypeError('two')])\n",
    "suggestion": "value = 1\nprint(valeu)\n",
    "attribute_suggestion": "import math\nmath.sqr(2)\n",
    "import_error": "import does_not_exist\n",
    "assertion": "assert 1 == 2, 'numbers differ'\n",
    "own_exception": (
        "class Mine(Exception):\n"
        "    def __str__(self):\n"
        "        return 'mine'\n"
        "raise Mine\n"
    ),
    "broken_str": "class E(Exception):\n    def __str__(self): 1/0\nraise E\n",
    "multi_line_statement": "x = {'a': 1}\nprint(\n    x['a'],\n    x['b'],\n)\n",
    "recursion": "def f(n):\n    return f(n + 1)\nf(0)\n",
    "recursion_limit": "import sys\nprint(sys.getrecursionlimit())\n",
    "memory_error": "bytearray(10 ** 15)\n",
    "exec_traceback": "exec(compile('1/0', '<made>', 'exec'))\n",
    "exit_0": "import sys\nsys.exit()\n",
    "exit_3": "import sys\nprint('x')\nsys.exit(3)\n",
    "exit_300": "import sys\nsys.exit(300)\n",
    "exit_negative": "import sys\nsys.exit(-1)\n",
    "exit_none": "import sys\nsys.exit(None)\n",
    "exit_string": "import sys\nsys.exit('gone')\n",
    "exit_object": "import sys\nsys.exit([1, 2])\n",
    "exit_builtin": "exit(4)\n",
    "system_exit": "raise SystemExit(5)\n",
    "exit_in_thread": (
        "import sys, threading\n"
        "t = threading.Thread(target=sys.exit, args=(9,))\n"
        "t.start(); t.join(); print('on')\n"
    ),
    "os_exit": "import os\nprint('lost')\nos._exit(6)\n",
    "keyboard_interrupt": "raise KeyboardInterrupt\n",
    "sigint_self": "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(5)\n",
    "killed_by_sigterm": (
        "import os, signal\n" "print('a', flush=True)\n" "os.kill(os.getpid(), signal.SIGTERM)\n"
    ),
    "abort": "import os\nos.abort()\n",
    "segfault_faulthandler": (
        "import faulthandler\nprint(faulthandler.is_enabled())\nfaulthandler.enable()\n"
        "def crash():\n    faulthandler._sigsegv()\ncrash()\n"
    ),
    "faulthandler_dump": (
        "import faulthandler, sys\n" "faulthandler.dump_traceback(sys.stderr, all_threads=False)\n"
    ),
    "thread_exception": (
        "import threading\n"
        "def work():\n"
        "    1/0\n"
        "t = threading.Thread(target=work, name='w')\n"
        "t.start(); t.join(); print('on')\n"
    ),
    "thread_outlives_main": (
        "import threading, time\n"
        "def late():\n"
        "    time.sleep(0.05); print('late')\n"
        "threading.Thread(target=late).start()\n"
        "print('first')\n"
    ),
    "daemon_thread": (
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "print('done')\n"
    ),
    "atexit_order": "import atexit\nfor i in range(3):\n    atexit.register(print, i)\n1/0\n",
    "atexit_failing": "import atexit\natexit.register(lambda: 1/0)\nprint('x')\n",
    "exception_in_del": (
        "class A:\n" "    def __del__(self): raise ValueError('late')\n" "A()\n" "print('on')\n"
    ),
    "del_at_exit": "class A:\n    def __del__(self): print('deleted')\nkept = A()\n",
    "del_uses_globals": (
        (
            "import time, json\n"
            "log = []\n"
            "class A:\n"
            "    def __del__(self):\n"
            "        log.append(time.gmtime(0).tm_year)\n"
            "        print(json.dumps(log), self.name)\n"
            "a = A(); a.name = 'a'; a.me = a\n"
            "b = A(); b.name = 'b'; b.other = a\n"
        )
    ),
    "generator_at_exit": (
        "def g():\n"
        "    try:\n"
        "        yield 1\n"
        "    finally:\n"
        "        print('closed')\n"
        "kept = g()\n"
        "print(next(kept))\n"
    ),
    "finalizer_at_exit": (
        "import weakref\n" "class A: pass\n" "a = A()\n" "weakref.finalize(a, print, 'finalized')\n"
    ),
    "annotations": (
        "x: int = 1\n" "print(__annotations__, globals()['__annotations__'] is __annotations__)\n"
    ),
    "file_left_open": "f = open('left.txt', 'w')\nf.write('flushed at exit')\n",
    "file_left_open_in_cycle": (
        "class K:\n"
        "    pass\n"
        "k = K()\n"
        "k.me = k\n"
        "k.f = open('left.txt', 'w')\n"
        "k.f.write('x' * 10)\n"
        "def f(): return k\n"
    ),
    "excepthook": "import sys\nsys.excepthook = lambda *a: print('hook', a[0].__name__)\n1/0\n",
    "unraisable": (
        "import weakref\n"
        "class A: pass\n"
        "a = A()\n"
        "r = weakref.ref(a, lambda _: 1/0)\n"
        "del a\n"
    ),
    "stdout_closed": "import sys, os\nos.close(1)\nprint('nowhere')\n",
    "stdout_object_closed": "import sys\nsys.stdout.close()\nprint('x')\n",
    "stdout_replaced": (
        "import io, sys\n"
        "sys.stdout = io.StringIO()\n"
        "print('hidden')\n"
        "sys.stderr.write(sys.stdout.getvalue())\n"
    ),
    "stdout_detached": (
        "import sys\n"
        "print('a')\n"
        "sys.stdout.flush()\n"
        "raw = sys.stdout.detach()\n"
        "raw.write(b'b')\n"
        "raw.flush()\n"
    ),
    "streams": (
        (
            "import sys\n"
            "for s in (sys.stdin, sys.stdout, sys.stderr):\n"
            "    print(s.name, s.mode, s.encoding, s.errors, s.line_buffering, "
            "s.write_through, s.isatty(), s.fileno(), s.newlines)\n"
        )
    ),
    "order_of_streams": (
        "import sys\n" "print('1')\n" "print('2', file=sys.stderr)\n" "print('3', flush=True)\n"
    ),
    "much_output": "for i in range(20000):\n    print(i)\n",
    "binary_output": "import sys\nsys.stdout.buffer.write(bytes(range(256)))\n",
    "unicode": "print('žluťoučký kůň 漢字 \\U0001f40e العربية')\n",
    "unicode_traceback": "název = '漢字'\nraise ValueError(název + '\\U0001f40e')\n",
    "surrogate": "print('\\ud800')\n",
    "surrogate_in_error": "raise ValueError('\\ud800')\n",
    "input_eof": "print('before')\ninput('name? ')\n",
    "stdin_read": "import sys\nprint(repr(sys.stdin.read()), list(sys.stdin))\n",
    "pickle": (
        "import pickle\nclass Point:\n    def __init__(self, x): self.x = x\n"
        "p = pickle.loads(pickle.dumps(Point(3)))\nprint(type(p), p.x, Point.__module__)\n"
    ),
    "getsource": (
        "import inspect\n"
        "def f(a,  b):  # kept\n"
        "    return a\n"
        "print(inspect.getsource(f), inspect.getfile(f))\n"
    ),
    "getsource_of_main": "import inspect, sys\nprint(inspect.getsource(sys.modules['__main__']))\n",
    "own_file": "print(open(__file__).read())\n",
    "stack": (
        "import inspect, sys\n"
        "print([f.function for f in inspect.stack()], sys._getframe().f_back)\n"
    ),
    "stack_in_function": "import traceback\ndef f(): traceback.print_stack()\nf()\n",
    "tracing": (
        "import sys, threading\n" "print(sys.gettrace(), sys.getprofile(), threading.gettrace())\n"
    ),
    "fork_pool": (
        (
            "import multiprocessing as mp\n"
            "def square(x): return x * x\n"
            "if __name__ == '__main__':\n"
            "    with mp.get_context('fork').Pool(2) as p:\n"
            "        print(p.map(square, range(5)))\n"
        )
    ),
    "spawn_pool": (
        (
            "import multiprocessing as mp\n"
            "print('imported as', __name__, flush=True)\n"
            "def square(x): return x * x\n"
            "if __name__ == '__main__':\n"
            "    with mp.get_context('spawn').Pool(1) as p:\n"
            "        print(p.map(square, range(5)))\n"
        )
    ),
    "spawn_path": (
        (
            "import multiprocessing as mp, sys\n"
            "def show(q): q.put((sys.path, sys.argv, __file__, __name__))\n"
            "if __name__ == '__main__':\n"
            "    c = mp.get_context('spawn')\n"
            "    q = c.Queue()\n"
            "    p = c.Process(target=show, args=(q,))\n"
            "    p.start()\n"
            "    print(q.get())\n"
            "    p.join()\n"
            "    print(p.exitcode)\n"
        )
    ),
    "spawn_without_guard": (
        "import multiprocessing as mp\nc = mp.get_context('spawn')\np = c.Process(target=print)\n"
        "try:\n    p.start()\nfinally:\n    print(__name__)\n"
    ),
    "forkserver": (
        "import multiprocessing as mp\ndef f(x): return x + 1\nif __name__ == '__main__':\n"
        "    with mp.get_context('forkserver').Pool(1) as p:\n        print(p.map(f, [1]))\n"
    ),
    "process_exception": (
        (
            "import multiprocessing as mp\n"
            "def f(): 1/0\n"
            "if __name__ == '__main__':\n"
            "    p = mp.get_context('fork').Process(target=f)\n"
            "    p.start(); p.join(); print(p.exitcode)\n"
        )
    ),
    "os_fork": (
        "import os\n"
        "print('once', flush=True)\n"
        "if os.fork() == 0:\n"
        "    os._exit(3)\n"
        "print(os.wait()[1] >> 8)\n"
    ),
    "process_executor": (
        (
            "from concurrent.futures import ProcessPoolExecutor as E\n"
            "import multiprocessing as mp\n"
            "def f(x): return -x\n"
            "if __name__ == '__main__':\n"
            "    with E(2, mp_context=mp.get_context('fork')) as e:\n"
            "        print(list(e.map(f, [1, 2])))\n"
        )
    ),
    "thread_executor": (
        "from concurrent.futures import ThreadPoolExecutor as E\n"
        "with E(4) as e:\n"
        "    print(sum(e.map(abs, range(-9, 0))))\n"
    ),
    "child_python": (
        (
            "import subprocess, sys\n"
            "code = 'import sys, os; print(sys.path, sorted(os.environ), "
            'sorted(sys.modules), os.listdir("/proc/self/fd"))\'\n'
            "print(subprocess.run([sys.executable, '-c', code], "
            "capture_output=True, text=True))\n"
        )
    ),
    "child_runs_main": (
        "import subprocess, sys\n"
        "if len(sys.argv) < 2:\n"
        "    print(subprocess.run([sys.executable, __file__, 'x']).returncode)\n"
        "else:\n"
        "    sys.exit(7)\n"
    ),
    "child_module": (
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-m', 'json.tool'], input=b'{\"a\":1}')\n"
    ),
    "child_signals": (
        "import subprocess\n"
        "print(subprocess.run(['sh', '-c', 'grep Sig[BI] /proc/self/status'], "
        "capture_output=True, text=True).stdout)\n"
    ),
    "shell_environment": "import os\nos.system('env | grep -v ^PWD= | grep -v ^_= | sort')\n",
    "sigpipe": (
        "import subprocess\n"
        "p = subprocess.run('yes | head -1', shell=True, capture_output=True)\n"
        "print(p)\n"
    ),
    "asyncio": (
        "import asyncio\n"
        "async def f(n):\n"
        "    await asyncio.sleep(0.01 * n)\n"
        "    return n\n"
        "async def main():\n"
        "    print(await asyncio.gather(f(2), f(1)))\n"
        "asyncio.run(main())\n"
    ),
    "asyncio_never_awaited": "async def f(): ...\nf()\n",
    "asyncio_error": "import asyncio\nasync def f(): raise ValueError('x')\nasyncio.run(f())\n",
    "dataclass": (
        "from dataclasses import dataclass, field\n"
        "@dataclass(order=True)\n"
        "class P:\n"
        "    x: int\n"
        "    y: list = field(default_factory=list)\n"
        "print(P(1), P(1) < P(2), P.__module__)\n"
        "P()\n"
    ),
    "enum": "import enum\nclass C(enum.Enum):\n    A = 1\nprint(C.A, repr(C.A), C(2))\n",
    "locale": (
        "import locale, sys\n"
        "print(locale.getlocale(), locale.setlocale(locale.LC_ALL), "
        "locale.getpreferredencoding(), sys.getfilesystemencoding())\n"
    ),
    "time_zone": "import time, datetime\nprint(time.tzname, datetime.datetime.fromtimestamp(0))\n",
    "warning": (
        "import warnings\n"
        "warnings.warn('careful')\n"
        "warnings.warn('old', DeprecationWarning)\n"
    ),
    "warning_in_function": (
        "import warnings\n"
        "def old():\n"
        "    warnings.warn('use new', FutureWarning, stacklevel=2)\n"
        "old()\n"
    ),
    "warning_error": (
        "import warnings\n" "warnings.simplefilter('error')\n" "warnings.warn('now fatal')\n"
    ),
    "syntax_warning": "print('\\d')\nprint(1 is 1)\n",
    "resource_warning": "import warnings\nwarnings.simplefilter('always')\nopen('/dev/null')\n",
    "warning_filters": (
        "import sys, warnings\n"
        "print(warnings.filters, sys.warnoptions, warnings.showwarning.__module__)\n"
    ),
    "flags": (
        "import sys\n"
        "print(sys.flags, sys._xoptions, sys.dont_write_bytecode, sys.pycache_prefix)\n"
    ),
    "sys_path": "import sys\nprint(sys.path, sys.path_hooks, sys.meta_path)\n",
    "importer_cache": (
        "import sys\n"
        "print([p for p in sys.path_importer_cache if 'hutch' in p or p == '/code'])\n"
    ),
    "environment": "import os\nprint(os.environ)\n",
    "threads": (
        "import threading\n"
        "print(threading.enumerate(), threading.active_count())\n"
        "print(open('/proc/self/status').read().split('Threads:')[1].split()[0])\n"
    ),
    "descriptors": (
        "import os\n"
        "print(sorted(os.listdir('/proc/self/fd')), [os.get_inheritable(i) for "
        "i in (0, 1, 2)])\n"
    ),
    "signals": (
        "import signal\n"
        "print([(s, signal.getsignal(s)) for s in range(1, 64) if s not in "
        "(32, 33)], signal.pthread_sigmask(0, []))\n"
    ),
    "hooks": (
        "import sys, builtins\n"
        "print(sys.excepthook, sys.displayhook, sys.unraisablehook, "
        "sys.breakpointhook, __import__, sys.getswitchinterval(), "
        "sys.get_asyncgen_hooks())\n"
    ),
    "gc": "import gc\nprint(gc.isenabled(), gc.get_threshold(), gc.callbacks, gc.get_debug())\n",
    "no_sitecustomize": (
        "import sys\n"
        "print([m for m in sys.modules if 'hutch' in m or m == 'sitecustomize' "
        "and 'hutch' in sys.modules[m].__file__])\n"
    ),
    "loader_class": (
        (
            "import importlib.machinery as m, _frozen_importlib_external as e\n"
            "print(m.SourceFileLoader, e.SourceFileLoader is m.SourceFileLoader, "
            "isinstance(__loader__, m.SourceFileLoader))\n"
        )
    ),
    "umask_cwd": (
        "import os\n"
        "u = os.umask(0)\n"
        "print(oct(u), os.getcwd(), os.listdir('.') in ([], ['main.py']), os.nice(0))\n"
    ),
    "int_digits": "print(int('1' * 5000))\n",
    "runpy": (
        "import runpy\n"
        "open('m.py', 'w').write('print(__name__, __file__)')\n"
        "runpy.run_path('m.py')\n"
        "import m\n"
    ),
    "import_own_module": (
        "open('mine.py', 'w').write('def f(): return 1/0')\n"
        "import mine\n"
        "print(mine.__file__)\n"
        "mine.f()\n"
    ),
    "import_main": "import sys\nimport __main__\nprint(__main__ is sys.modules['__main__'])\n",
    "breakpoint_at_eof": "x = 1\nbreakpoint()\nprint('after')\n",
    "doctest": (
        "def f():\n"
        "    '''\n"
        "    >>> f()\n"
        "    2\n"
        "    '''\n"
        "    return 1\n"
        "import doctest\n"
        "print(doctest.testmod())\n"
    ),
    "unittest": (
        (
            "import unittest\n"
            "class T(unittest.TestCase):\n"
            "    def test_a(self): self.assertEqual(1, 1)\n"
            "unittest.main(argv=['x'], "
            "testRunner=unittest.TextTestRunner(stream=open('/dev/null', 'w')))\n"
        )
    ),
    "logging": (
        "import logging\n"
        "logging.warning('w')\n"
        "try:\n"
        "    1/0\n"
        "except Exception:\n"
        "    logging.exception('e')\n"
    ),
    "tracemalloc": (
        "import tracemalloc\n"
        "tracemalloc.start()\n"
        "x = [0] * 1000\n"
        "print(tracemalloc.take_snapshot().statistics('lineno')[0].traceback)\n"
    ),
    "lambda_traceback": "f = lambda x: (\n    x['k'])\nf({})\n",
    "wide_characters_caret": "漢 = {}\nprint('漢字', 漢['あ'] + 1)\n",
    "generator_error": (
        "def g():\n"
        "    yield 1\n"
        "    raise RuntimeError('done')\n"
        "for x in g():\n"
        "    print(x)\n"
    ),
    "repeated_lines": "def f(n):\n    if n: return f(n - 1)\n    1/0\nf(30)\n",
}

# A file beside the script wins over the library module of its name; what CPython has already
# imported when it starts does not give way.
SHADOWED = {
    "own_queue": ({"queue.py": b"print('own queue')\n"}, "import queue\n"),
    "own_json": ({"json.py": b"print('own json')\n"}, "import json\nprint(json.__file__)\n"),
    "own_package": (
        {"statistics/__init__.py": b"print('own')\n", "statistics/more.py": b"x = 1\n"},
        "import statistics.more\nprint(statistics.more.x)\n",
    ),
    "not_a_package": ({"json/data.txt": b""}, "import json\nprint(json.dumps(1))\n"),
    "own_os_loses": ({"os.py": b"print('never')\n"}, "import os\nprint(os.getcwd())\n"),
    "own_module": ({"data.py": b"rows = [1]\n"}, "from data import rows\nprint(rows)\n"),
    "own_usercustomize": ({"usercustomize.py": b"print('never')\n"}, "print(1)\n"),
    "own_sitecustomize": ({"sitecustomize.py": b"print('own')\n"}, "print(1)\n"),
    "own_encoding": (
        {"encodings/__init__.py": b"print('never')\n"},
        "import encodings\nprint(1)\n",
    ),
}
