"""The warm runner: gets an interpreter ready, waits for a program, and steps out of the way.

The sandbox starts `python3 /code/main.py` with this file's directory as PYTHONPATH, before
/code/main.py exists. CPython imports `sitecustomize` before it opens the script, so the time
between the two is ours: the profile's libraries are imported here, the program is awaited here,
and after this module returns CPython itself runs the program, as a real script. Nothing of a run
(exceptions, exit codes, atexit, signals, source lines) is imitated.

The socket, file descriptor 3 (AF_UNIX, stream), in order:
  in   u32 little-endian length, then JSON {"imports": ["numpy", ...]}
  out  one byte `R`: the libraries are imported, the program may come
  in   u32 little-endian length, then that many bytes: the program's arguments, a NUL behind each
  in   u64 little-endian length, then that many bytes of UTF-8 source
End of file before a whole message ends the process with status 0 and without a word.

Exit status before the program starts (each with one line on standard error):
  70  a library of the profile could not be imported, or the first message was not understood
  71  the program could not be written to /code/main.py (a full disk, for instance)

Danger: once the program's files may lie in the working directory nothing is imported here, and
the working directory enters sys.path only when CPython is about to compile the program. An import
after the wait would run a file of the program's as if it were ours.
"""

import _frozen_importlib_external as _external
import _imp
import _signal
import _thread
import gc
import os
import sys

_SOCKET = 3
_PROGRAM = "/code/main.py"
_DEADLINE_SIGNAL = 64  # SIGRTMAX; the engine sends it to the program's process alone
_EXIT_NOT_READY = 70
_EXIT_NOT_WRITTEN = 71

# What CPython itself imports, late, to show an exception or a warning with its source line.
_RESIDENT = ("ast", "json", "linecache", "tokenize", "traceback", "unicodedata", "warnings")


def _is_ours():
    """True in the process the sandbox starts, false in any other that finds this file."""
    try:
        return sys.orig_argv[-1] == _PROGRAM and os.fstat(_SOCKET).st_mode & 0o170000 == 0o140000
    except OSError:
        return False


def _fail(status, message):
    os.write(2, f"hutch: {message}\n".encode("utf-8", "backslashreplace"))
    os._exit(status)


def _read(size):
    """Exactly `size` bytes from the socket; end of file means that nobody waits for us."""
    parts = []
    while size > 0:
        try:
            part = os.read(_SOCKET, min(size, 1 << 20))
        except OSError:
            part = b""
        if not part:
            os._exit(0)
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _hide():
    """Takes the way this file was found out of what the program and its children see."""
    directory = os.path.dirname(__file__)
    os.environ.pop("PYTHONPATH", None)
    sys.path[:] = [entry for entry in sys.path if entry != directory]
    sys.path_importer_cache.pop(directory, None)
    os.set_inheritable(_SOCKET, False)


def _import_libraries():
    """Imports the profile's libraries. Their warnings about each other are not the program's
    output, and the variables they set are not the program's environment.

    What they made is then out of the garbage collector's sight. Without that, each full collection
    walks it, and CPython does several of those while it exits: ten times the length of a short run.
    """
    gc.disable()
    for name in _RESIDENT:
        __import__(name)
    warnings = sys.modules["warnings"]
    environment = dict(os.environ)
    shown, warnings.showwarning = warnings.showwarning, lambda *_, **__: None
    silent, name = warnings.showwarning, "the first message"
    try:
        message = _read(int.from_bytes(_read(4), "little"))
        for name in sys.modules["json"].loads(message)["imports"]:
            __import__(name)
    except BaseException as error:
        _fail(_EXIT_NOT_READY, f"cannot import {name}: {type(error).__name__}: {error}")
    if warnings.showwarning is silent:
        warnings.showwarning = shown
    for key in set(os.environ) - set(environment):
        del os.environ[key]
    os.environ.update(environment)
    gc.freeze()
    gc.enable()
    _renew_main()


def _renew_main():
    """Puts a new __main__ in the place of the one that is frozen with the libraries: what the
    program leaves in its globals is collected, and finalized, at exit as in a plain run."""
    old = sys.modules["__main__"]
    new = type(sys)("__main__")
    new.__dict__.update(old.__dict__)
    if "__annotations__" in old.__dict__:
        new.__dict__["__annotations__"] = {}
    sys.modules["__main__"] = new


def _flush_streams():
    """Flushes whatever stands for the streams now; true if one is in the middle of a write."""
    busy = False
    for name in ("stdout", "stderr", "__stdout__", "__stderr__"):
        try:
            getattr(sys, name).flush()
        except RuntimeError:
            busy = True
        except BaseException:
            pass
    return busy


def _flush_and_leave(*_signal_and_frame):
    """The deadline: what was printed so far goes out, then the process ends.

    The exit status means nothing here, the engine knows why it ended the run. A stream that the
    signal met in the middle of a write refuses a second write from the same thread, but makes
    another thread wait until the first is done; SIGKILL bounds that wait.
    """
    if _flush_streams():
        try:
            _thread.start_new_thread(_leave, ())
            return
        except RuntimeError:
            pass
    os._exit(0)


def _leave():
    _flush_streams()
    os._exit(0)


def _warm_up():
    """Touches what every program needs first: the compiler, the text streams."""
    compile("def f(x):\n    return [x, f'{x}']\n", _PROGRAM, "exec")
    for stream in (sys.stdout, sys.stderr):
        stream.write("")


def _take_arguments(message):
    """Puts the program's arguments where CPython puts those of a command line."""
    arguments = [argument.decode("utf-8", "surrogateescape") for argument in message.split(b"\0")]
    del arguments[-1]
    sys.argv += arguments
    sys.orig_argv += arguments


def _write_program(source):
    try:
        descriptor = os.open(_PROGRAM, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        while source:
            source = source[os.write(descriptor, source) :]
        os.close(descriptor)
    except OSError as error:
        _fail(_EXIT_NOT_WRITTEN, f"cannot write the program: {error.strerror}")


def _give_way(directory, started_with):
    """Forgets each preimported module that a file in `directory` shadows.

    For a script its own directory comes first: a program that was sent with its own queue.py means
    that one. The libraries keep the module they already hold. What CPython starts with
    (`started_with`) wins over the directory in a plain run too, and stays.
    """
    suffixes = _external.SOURCE_SUFFIXES + _external.BYTECODE_SUFFIXES + _imp.extension_suffixes()
    for entry in os.listdir(directory):
        name, dot, rest = entry.partition(".")
        if name not in sys.modules or name in started_with:
            continue
        package = os.path.join(directory, entry, "__init__")
        if dot and dot + rest not in suffixes:
            continue
        if dot or any(os.path.isfile(package + suffix) for suffix in suffixes):
            for module in [m for m in sys.modules if m == name or m.startswith(name + ".")]:
                del sys.modules[module]


def _hand_over(directory):
    """Arranges the last change, which is possible only after this module has returned.

    CPython puts the script's directory on sys.path between `site` and the script, and importlib
    wants `sitecustomize` in sys.modules until its import has ended. The one Python-level call
    between that and the compilation of the script is SourceFileLoader("__main__", path), looked up
    by name: a stand-in takes that call, tidies up, and is gone before the program's first line.
    """
    loader = _external.SourceFileLoader
    script_directory = os.path.realpath(os.path.dirname(_PROGRAM))  # CPython resolves links too

    def tidy_up(*arguments):
        _external.SourceFileLoader = loader
        if sys.path[:1] == [script_directory]:
            del sys.path[0]
        sys.path.insert(0, directory)
        sys.modules.pop(__name__, None)
        return loader(*arguments)

    _external.SourceFileLoader = tidy_up


def _run():
    started_with = frozenset(sys.modules)
    _hide()
    _import_libraries()
    _warm_up()
    _signal.signal(_DEADLINE_SIGNAL, _flush_and_leave)
    try:
        os.write(_SOCKET, b"R")
    except OSError:
        os._exit(0)
    arguments = _read(int.from_bytes(_read(4), "little"))
    source = _read(int.from_bytes(_read(8), "little"))
    _take_arguments(arguments)
    _write_program(source)
    os.close(_SOCKET)
    directory = os.getcwd()
    _give_way(directory, started_with)
    _hand_over(directory)


if _is_ours():
    _run()
