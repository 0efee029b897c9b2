"""What a program sees of the place it runs in, and that the figures agree with its limits."""

import json

import pytest

FIGURES = """
import json, multiprocessing, os, subprocess
def lines(path): return open(path).read().splitlines()
print(json.dumps({
  'cpu_count': os.cpu_count(),
  'affinity': len(os.sched_getaffinity(0)),
  'multiprocessing': multiprocessing.cpu_count(),
  'nproc': int(subprocess.run(['nproc'], capture_output=True, text=True).stdout),
  'getconf': os.sysconf('SC_NPROCESSORS_ONLN'),
  'cpuinfo': sum(line.startswith('processor') for line in lines('/proc/cpuinfo')),
  'stat': sum(line.startswith('cpu') and line[3].isdigit() for line in lines('/proc/stat')),
  'meminfo': {l.split(':')[0]: int(l.split()[1]) for l in lines('/proc/meminfo') if ' kB' in l},
}))
"""


def test_processors_and_memory_agree(daemon):
    seen = json.loads(daemon.execute(FIGURES)["stdout"])
    for name in ("cpu_count", "affinity", "multiprocessing", "nproc", "getconf", "cpuinfo", "stat"):
        assert seen[name] == 1, (name, seen)
    assert seen["meminfo"]["MemTotal"] == 512 * 1024
    assert 0 < seen["meminfo"]["MemAvailable"] <= 512 * 1024
    assert seen["meminfo"].get("SwapTotal", 0) == 0


def test_processors_and_memory_agree_with_other_limits(own_daemon):
    here = own_daemon(sets={"limits.cpus": 1.5, "limits.memory_bytes": 768 << 20})
    seen = json.loads(here.execute(FIGURES)["stdout"])
    for name in ("cpu_count", "affinity", "multiprocessing", "nproc", "getconf", "cpuinfo", "stat"):
        assert seen[name] == 2, (name, seen)
    assert seen["meminfo"]["MemTotal"] == 768 * 1024


@pytest.mark.cgroup_limits
def test_half_a_processor(own_daemon):
    here = own_daemon(sets={"limits.cpus": 0.5})
    assert json.loads(here.execute(FIGURES)["stdout"])["cpu_count"] == 1
    code = "import time\nend = time.monotonic() + 2\nwhile time.monotonic() < end: pass"
    end = here.execute(code, report=True)["end"]
    assert end["cpu_ms"] < 1300


@pytest.mark.parametrize(
    "expression, value",
    [
        ("os.getcwd()", "/work"),
        ("os.path.expanduser('~')", "/home/sandbox"),
        ("os.environ['HOME']", "/home/sandbox"),
        ("socket.gethostname()", "sandbox"),
        ("time.tzname[0], time.localtime().tm_gmtoff", ("UTC", 0)),
        ("time.strftime('%Z')", "UTC"),
        ("locale.setlocale(locale.LC_ALL, '')", "C.UTF-8"),
        ("sys.getfilesystemencoding()", "utf-8"),
        ("sys.path[0]", "/work"),
        ("__name__", "__main__"),
        ("sys.argv[1:]", []),
        ("os.listdir('.')", []),
        ("os.getpid() > 1", True),
        ("getpass.getuser()", "sandbox"),
        ("os.getuid(), os.getgid()", (1000, 1000)),
        ("os.path.exists('/sys/kernel')", False),
        ("os.access('/', os.W_OK), os.access('/usr', os.W_OK)", (False, False)),
        ("sorted(os.listdir('/dev/fd')) == sorted(os.listdir('/proc/self/fd'))", True),
        ("sys.stdout.line_buffering", False),
        ("os.getppid() in (0, 1)", True),
        ("sys.version_info >= (3, 11)", True),
        ("os.umask(0o22)", 0o022),
        ("signal.getsignal(signal.SIGINT) is signal.default_int_handler", True),
        ("signal.getsignal(signal.SIGTERM)", 0),
        ("signal.pthread_sigmask(signal.SIG_BLOCK, [])", set()),
        ("threading.active_count()", 1),
    ],
)
def test_what_a_program_sees(daemon, expression, value):
    code = "import getpass, locale, os, signal, socket, sys, threading, time\n"
    shown = daemon.execute(code + f"print(ascii(({expression})))").ok()
    assert shown["stderr"] == ""
    got = eval(shown["stdout"].replace("<Handlers.SIG_DFL: 0>", "0"), {"set": set})
    assert got == value


def test_the_environment_is_small_and_fixed(daemon):
    names = json.loads(
        daemon.execute("import json, os; print(json.dumps(dict(os.environ)))")["stdout"]
    )
    allowed = {
        "PATH",
        "HOME",
        "PWD",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "TZ",
        "USER",
        "LOGNAME",
        "TERM",
        "TMPDIR",
        "HOSTNAME",
        "MPLBACKEND",
        "MPLCONFIGDIR",
        "OMP_NUM_THREADS",
        "SHELL",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "PYTHONUNBUFFERED",
        "PYTHONHASHSEED",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONUTF8",
        "PYTHONIOENCODING",
        "SANDBOX_ID",
    }
    assert set(names) <= allowed, set(names) - allowed
    assert names["HOME"] == "/home/sandbox" and "/usr/bin" in names["PATH"]


def test_the_loopback_interface_is_up(daemon):
    code = """
import socket, threading
for family, address in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1')):
    server = socket.socket(family)
    server.bind((address, 0)); server.listen()
    threading.Thread(target=lambda: server.accept()[0].sendall(b'hello')).start()
    print(socket.create_connection(server.getsockname()[:2], 2).recv(5))
"""
    shown = daemon.execute(code).ok()
    assert shown["stdout"] == "b'hello'\nb'hello'\n", shown


def test_there_is_no_network(daemon):
    code = """
import socket, time
start = time.monotonic()
for what in (lambda: socket.getaddrinfo('example.org', 80),
             lambda: socket.create_connection(('192.0.2.1', 80), 5),
             lambda: socket.create_connection(('10.0.0.1', 53), 5),
             lambda: socket.create_connection(('169.254.169.254', 80), 5)):
    try: what(); print('reached')
    except OSError as error: print('refused')
print(time.monotonic() - start < 1)
"""
    assert daemon.execute(code)["stdout"] == "refused\n" * 4 + "True\n"


def test_nothing_can_be_installed(daemon):
    code = (
        "import subprocess, sys\n"
        "print(subprocess.run([sys.executable, '-m', 'pip', 'install', 'left'], "
        "capture_output=True).returncode != 0)"
    )
    assert daemon.execute(code)["stdout"] == "True\n"


@pytest.mark.parametrize(
    "name", ["numpy", "pandas", "matplotlib", "scipy", "sklearn", "sympy", "openpyxl", "PIL"]
)
def test_the_promised_libraries(daemon, name):
    shown = daemon.execute(f"import {name}; print({name}.__version__)").ok()
    assert shown["stdout"].strip()[0].isdigit() and shown["stderr"] == ""


def test_places_that_can_be_written(daemon):
    code = """
import os, tempfile
for place in ('.', '/tmp', '~', '/dev/shm', tempfile.gettempdir()):
    path = os.path.join(os.path.expanduser(place), 'probe')
    open(path, 'w').close(); os.remove(path)
for place in ('/', '/usr', '/etc', '/opt', '/var', '/proc', '/dev'):
    try: open(os.path.join(place, 'probe'), 'w').close(); print('wrote into', place)
    except OSError: pass
print('done')
"""
    shown = daemon.execute(code).ok()
    assert shown["stdout"] == "done\n" and shown["stderr"] == ""


def test_the_clock_is_the_host_s(daemon):
    import time

    assert abs(float(daemon.execute("import time; print(time.time())")["stdout"]) - time.time()) < 5


def test_randomness_differs(daemon):
    code = """
import os, random, uuid
print(os.urandom(8).hex(), random.random(), uuid.uuid4(), hash('a'))
"""
    seen = [daemon.execute(code)["stdout"].split() for _ in range(6)]
    for column in zip(*seen):
        assert len(set(column)) == 6, column


def test_the_sandbox_is_thrown_away(daemon):
    daemon.execute("open('/tmp/left','w').write('x'); open('left','w').write('y')").ok()
    for _ in range(4):
        shown = daemon.execute("import os; print(os.listdir('/tmp'), os.listdir('.'))").ok()
        assert shown["stdout"] == "[] []\n"
