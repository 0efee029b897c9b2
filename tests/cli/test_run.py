"""`hutch run` in real sandboxes: each test once against a daemon and once with a server of the run
alone."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess

import pytest
from harness import host, settings
from harness.daemon import new_state_dir
from harness.run_command import RunCommand, end_quietly
from harness.waiting import wait_until

TIMEOUT, FAILED, UNREADABLE, MISSING = 124, 125, 126, 127


@pytest.fixture
def alone():
    """The same, only with a server of its own."""
    command = RunCommand()
    yield command
    try:
        command.check_clean()
    finally:
        command.end()


# --- what a program is and does


def test_streams_and_status_are_the_program_s(hutch):
    done = hutch.run("-c", "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    assert (done.code, done.out, done.err) == (3, b"out\n", b"err\n")


def test_bytes_come_as_they_were_written(hutch):
    code = "import os; os.write(1, bytes(range(256))); os.write(2, b'\\xff'); os.write(1, b'end')"
    done = hutch.run("--quiet", "-c", code)
    assert (done.code, done.out, done.err) == (0, bytes(range(256)) + b"end", b"\xff")


def test_much_output_comes_whole(hutch):
    done = hutch.run("-c", "for i in range(300_000): print(f'{i:030}')")
    assert done.code == 0 and done.err == b""
    assert done.out == b"".join(b"%030d\n" % i for i in range(300_000))


def test_a_file_with_arguments(hutch):
    (hutch.place / "program.py").write_text("import sys; print(sys.argv[1:])")
    for words in (["a", "b c", "é"], ["--", "-x", "--out", ""], ["a", "--", "-b"]):
        given = [word for word in words if word != "--"]
        assert hutch.run("program.py", *words).out.decode() == f"{given}\n"
    assert hutch.run("--", "program.py", "-q").out == b"['-q']\n"
    assert hutch.run("-c", "import sys; print(sys.argv[1:])", "a", "--", "-b").out == (
        b"['a', '-b']\n"
    )


def test_code_from_standard_input(hutch):
    assert hutch.run("-", "x", stdin=b"import sys; print(sys.argv[1:], sys.stdin.read())").out == (
        b"['x'] \n"
    )


def test_a_program_that_is_empty(hutch):
    (hutch.place / "empty.py").write_text("")
    for given in (["empty.py"], ["-c", ""], ["-"]):
        done = hutch.run(*given)
        assert (done.code, done.out, done.err) == (0, b"", b"")


def test_a_traceback(hutch):
    done = hutch.run("-c", "x = 1\nraise ValueError(x)")
    assert done.code == 1 and done.out == b""
    assert "raise ValueError(x)" in done.words and done.words.endswith("ValueError: 1\n")


def test_output_comes_before_the_end(hutch):
    process = hutch.start("-c", "import time; print('first', flush=True); time.sleep(60)")
    try:
        assert process.stdout.readline() == b"first\n"
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(30 * settings.SLACK) == 143
    finally:
        end_quietly(process)


# --- how it ends


def test_a_deadline(hutch):
    done = hutch.run("-c", "print('begun', flush=True)\nwhile True: pass", "--timeout", "1")
    assert (done.code, done.out, done.err) == (TIMEOUT, b"begun\n", b"timed out after 1s\n")


def test_a_signal(hutch):
    assert hutch.run("-c", "import os; os.kill(os.getpid(), 11)").code == 139
    assert hutch.run("-c", "import os; os._exit(255)").code == 255


@pytest.mark.cgroup_limits
def test_too_much_memory(hutch):
    done = hutch.run("-c", "b'x' * (1 << 32)")
    assert done.code == 137 and "memory limit of " in done.words


@pytest.mark.parametrize(
    "given, code, words",
    [
        ([], FAILED, "say what to run: FILE, -c CODE, or - for standard input"),
        (["--nonsense"], FAILED, "--nonsense"),
        (["-c", "1", "--timeout", "x"], FAILED, "--timeout"),
        (["-c", "1", "--timeout", "99"], FAILED, "timeout_s must be between 1 and 60"),
        (["missing.py"], MISSING, "cannot open missing.py: No such file or directory"),
        (["."], UNREADABLE, "cannot read .: Is a directory"),
        (["latin1.py"], UNREADABLE, "the code is not UTF-8"),
        (["-c", "1", "--in", "missing.csv"], FAILED, "--in missing.csv: it cannot be read"),
        (["-c", "1", "--in", "latin1.py:../x"], FAILED, "escapes working directory"),
        (["-c", "1", "--out", "latin1.py"], FAILED, "latin1.py is not a directory"),
        (["-c", "1", b"\xff"], FAILED, "the argument \\xff is not UTF-8"),
        (["-c", "1", "--image", "nope"], FAILED, 'image'),
        (["-c", "1", "--profile", "nope"], FAILED, '--profile names the profile "nope"'),
    ],
)
def test_what_cannot_be_run(hutch, given, code, words):
    (hutch.place / "latin1.py").write_bytes(b"print('\xe9')")
    done = hutch.run(*given)
    assert done.code == code and done.out == b""
    assert words in done.words and done.words.startswith("hutch: ")


def test_code_that_is_too_large(hutch):
    done = hutch.run("-", stdin=b"#" * (33 << 20))
    assert done.code == FAILED
    assert done.words == (
        "hutch: standard input is larger than 32 MiB, the most that one request carries\n"
    )


# --- files


def test_files_go_in_and_come_out(hutch):
    (hutch.place / "data").mkdir()
    (hutch.place / "data" / "in.bin").write_bytes(bytes(range(256)))
    (hutch.place / "note.txt").write_text("note")
    hutch.give()
    code = (
        "import os; os.makedirs('made/deep');"
        "open('made/deep/out', 'wb').write(open('x/in.bin', 'rb').read()[::-1]);"
        "print(open('note.txt').read(), sorted(os.listdir('.')))"
    )
    given = ["--in", "data:x", "--in", "note.txt", "--out", "results/today"]
    done = hutch.run("-c", code, *given)
    assert (done.code, done.out) == (0, b"note ['made', 'note.txt', 'x']\n")
    assert done.words == "hutch: 1 file (256 bytes) written to results/today\n"
    made = hutch.place / "results" / "today" / "made" / "deep" / "out"
    assert made.read_bytes() == bytes(range(256))[::-1]
    everything = [path.name for path in (hutch.place / "results").rglob("*") if path.is_file()]
    assert everything == ["out"]
    assert hutch.run("-c", code, *given, "--quiet").err == b""


def test_files_that_do_not_come_back_are_named(hutch):
    code = (
        "import os; open('big', 'wb').truncate(4194305); os.symlink('/etc/passwd', 'a\\x1b[2Jb');"
        "open('c\\nd', 'w').write('kept')"
    )
    done = hutch.run("-c", code, "--out", "out")
    assert done.code == 0
    reason = "it is larger than limits.file_bytes"
    assert f"hutch: big did not come back (4194305 bytes): {reason}\n" in done.words
    assert "hutch: a\\x1b[2Jb did not come back" in done.words and "\x1b" not in done.words
    assert [path.name for path in (hutch.place / "out").iterdir()] == ["c\nd"]


def test_a_figure_is_kept(hutch):
    code = "import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()"
    done = hutch.run("-c", code, "--out", ".", "--timeout", "60")
    assert done.code == 0, done
    figures = [path for path in hutch.place.iterdir() if path.suffix == ".png"]
    assert len(figures) == 1 and figures[0].read_bytes().startswith(b"\x89PNG")


def test_json_is_one_object(hutch):
    code = "import sys; print('out'); open('f', 'w').write('x'); sys.exit(2)"
    done = hutch.run("--json", "-c", code, "--out", "out", "--quiet")
    assert done.code == 2 and done.err == b""
    answer = json.loads(done.out)
    assert answer["stdout"] == "out\n" and answer["exit_code"] == 2
    assert answer["end"]["cause"] == "exited" and answer["files"][0]["path"] == "f"
    assert (hutch.place / "out" / "f").read_text() == "x"
    late = hutch.run("--json", "-c", "while True: pass", "--timeout", "1")
    assert late.code == TIMEOUT and late.err == b""
    assert json.loads(late.out)["exit_code"] == -1


# --- interruptions


LONG = "import time; print('begun', flush=True); time.sleep(60)"


@pytest.mark.parametrize("name, code", [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_an_interruption_ends_the_run_first(hutch, daemon, name, code):
    process = hutch.start("-c", LONG)
    try:
        assert process.stdout.readline() == b"begun\n"
        tree = hutch.tree(process.pid)
        assert len(tree) >= (6 if hutch.is_private else 1), tree
        process.send_signal(getattr(signal, name))
        out, err = process.communicate(timeout=30 * settings.SLACK)
        assert (process.returncode, out, err) == (code, b"", b"")
        # Not soon after the command's end, but before it.
        if not hutch.is_private:
            assert daemon.pool()["in_flight"] == 0
        hutch.check_clean()
        hutch.check_gone(tree)
    finally:
        end_quietly(process)


def test_an_interruption_before_anything_runs(alone):
    """At any moment of the start: nothing is left, whatever had been made."""
    for moment in range(0, 400, 40):
        process = alone.start("-c", LONG)
        try:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(moment / 1000)
            tree = alone.tree(process.pid)
            process.send_signal(signal.SIGINT)
            # Before it has taken the signals over, the signal itself ends it.
            assert process.wait(30 * settings.SLACK) in (130, -signal.SIGINT)
            alone.check_gone(tree)
        finally:
            end_quietly(process)


def test_a_command_that_is_killed_leaves_nothing(hutch, daemon):
    process = hutch.start("-c", LONG)
    try:
        assert process.stdout.readline() == b"begun\n"
        tree = hutch.tree(process.pid)
        process.kill()
        process.wait()
        wait_until(lambda: daemon.pool()["in_flight"] == 0, 10, "the daemon still runs it")
        hutch.check_gone(tree)
        assert hutch.run("-c", "print(1)").out == b"1\n"
    finally:
        end_quietly(process)


def test_its_server_being_killed_is_told_and_swept(alone):
    process = alone.start("-c", LONG)
    try:
        assert process.stdout.readline() == b"begun\n"
        tree = alone.tree(process.pid)
        (server,) = host.children_of(process.pid)
        os.kill(server, signal.SIGKILL)
        out, err = process.communicate(timeout=30 * settings.SLACK)
        assert (process.returncode, out) == (FAILED, b"")
        assert err == b"hutch: the server of this run was ended by signal 9\n"
        alone.check_gone(tree)
    finally:
        end_quietly(process)


def test_everything_killed_at_once_is_swept_by_the_next(alone):
    process = alone.start("-c", LONG)
    try:
        assert process.stdout.readline() == b"begun\n"
        tree = alone.tree(process.pid)
        for pid in tree:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        assert alone.run("-c", "print(1)").out == b"1\n"
        assert sorted(path.name for path in alone.state.glob("run/*")) == ["0"]
        alone.check_gone(tree)
    finally:
        end_quietly(process)


def test_a_reader_that_leaves_ends_the_run(hutch, daemon):
    code = "import time\nwhile True: print('line', flush=True); time.sleep(0.01)"
    process = hutch.start("-c", code)
    try:
        assert process.stdout.readline() == b"line\n"
        tree = hutch.tree(process.pid)
        process.stdout.close()
        assert process.wait(30 * settings.SLACK) == 128 + signal.SIGPIPE
        assert process.stderr.read() == b""
        assert daemon.pool()["in_flight"] == 0
        hutch.check_gone(tree)
    finally:
        end_quietly(process)


def test_standard_output_that_takes_nothing(hutch):
    with open("/dev/full", "wb") as full:
        process = hutch.start("-c", "print('x' * 100000)", stdout=full)
        _, err = process.communicate(timeout=60)
    assert process.returncode == FAILED
    assert err == b"hutch: cannot write to standard output: No space left on device\n"


def test_standard_descriptors_that_are_closed(hutch):
    """Nothing else may get their numbers: what the program prints would be sent there."""
    script = 'exec "$@" <&- >&- 2>&-'
    command = ["sh", "-c", script, "sh", *hutch.arguments("-c", "print('x')")]
    done = subprocess.run(command, cwd=hutch.place, env=hutch.environment(), timeout=60)
    assert done.returncode == 0


def test_a_reader_that_is_slow_holds_the_program_and_not_the_signals(hutch):
    process = hutch.start("-c", "while True: print('x' * 99)")
    try:
        assert process.stdout.read(10) == b"x" * 10
        # Long enough for every buffer in between to be full.
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        process.send_signal(signal.SIGINT)
        assert process.wait(30 * settings.SLACK) == 130
    finally:
        end_quietly(process)


# --- where it runs


def test_runs_at_once_have_places_of_their_own(alone):
    first, second = (alone.start("-c", LONG) for _ in range(2))
    try:
        for process in (first, second):
            assert process.stdout.readline() == b"begun\n", process.stderr.read()
        assert sorted(path.name for path in alone.state.glob("run/*")) == ["0", "1"]
        tree = alone.tree(first.pid) | alone.tree(second.pid)
        for process in (first, second):
            process.send_signal(signal.SIGINT)
            assert process.wait(30 * settings.SLACK) == 130
        alone.check_gone(tree)
    finally:
        end_quietly(first)
        end_quietly(second)


@pytest.mark.as_root  # others find the image that root has built
def test_without_an_image_the_remedy_is_named(alone):
    shutil.rmtree(alone.state)
    alone.state = new_state_dir(images=False)
    done = alone.run("-c", "1")
    assert done.code == FAILED and done.out == b""
    assert "hutch image build python" in done.words and done.words.count("\n") == 1


def test_settings_reach_a_server_of_its_own(alone):
    done = alone.run("-c", "print('x' * 100)", "--set", "limits.cpus=1", "--json")
    assert done.code == 0, done
    bad = alone.run("-c", "1", "--set", "limits.cpu=1")
    assert bad.code == FAILED and "limits.cpu" in bad.words
    both = alone.run("-c", "1", "--url", "http://127.0.0.1:1")
    assert both.code == FAILED and "leave one of the two out" in both.words


@pytest.mark.parametrize(
    "how, name",
    [("flag", "--url"), ("variable", "HUTCH_INTERNAL_URL"), ("profile", "profile work")],
)
def test_an_address_that_was_given_has_to_answer(how, name):
    nobody = "http://127.0.0.1:1"
    command = RunCommand("" if how == "profile" else nobody)
    directory = command.place / "home" / "hutch"
    directory.mkdir(parents=True)
    (directory / "config.toml").write_text(f'[profiles.work]\ninternal_url = "{nobody}"\n')
    command.give()
    given = {"flag": ["--url", nobody], "profile": ["--profile", "work"]}.get(how, [])
    done = command.run("-c", "1", *given)
    command.end()
    assert done.code == FAILED and done.out == b""
    assert f"cannot reach {nobody}: Connection refused" in done.words
    assert f"{name} names that server" in done.words


def test_a_key_that_others_can_read_is_refused(alone):
    directory = alone.place / "home" / "hutch"
    directory.mkdir(parents=True)
    (directory / "config.toml").write_text('[profiles.work]\napi_key = "secret"\n')
    (directory / "config.toml").chmod(0o644)
    alone.give()
    done = alone.run("-c", "1")
    assert done.code == FAILED
    assert f"run: chmod 600 {directory}/config.toml" in done.words and "secret" not in done.words
    (directory / "config.toml").chmod(0o600)
    assert alone.run("-c", "print(1)").out == b"1\n"


def test_the_default_address_is_tried_first(alone):
    """With nobody there the run makes its own server; the tests' hosts keep that port free."""
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", 8700)) == 0:
            pytest.skip("somebody serves at the default address")
    if settings.ROOTLESS or not os.path.exists("/var/lib/hutch/images"):
        pytest.skip("there is no image at the default place")
    command = RunCommand("")
    done = command.run("-c", "print(1)")
    command.end()
    assert (done.code, done.out, done.err) == (0, b"1\n", b"")
