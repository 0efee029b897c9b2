"""SIGHUP: what can change does, what cannot is named, and a bad file changes nothing."""

import os
import pathlib
import shutil
import signal
import tempfile

import pytest
from harness import settings
from harness.waiting import wait_until

DAEMON = ["--internal", "127.0.0.1:0", "--public", "127.0.0.1:0"]


@pytest.fixture
def place():
    """A directory that the server's user can enter, as /etc/hutch is."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="hutch-etc-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def hang_up(daemon):
    """Sends SIGHUP; the line of the log that answers it."""
    before = answers(daemon)
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: len(answers(daemon)) > len(before), 10, daemon.log_text)
    return answers(daemon)[-1]


def answers(daemon):
    return [line for line in daemon.log_records() if line["event"].startswith("reload")]


def requests(daemon):
    return [line for line in daemon.log_records() if line["event"] == "request"]


def write(file, text):
    """As editors do it: another file takes the name."""
    new = file.with_suffix(".new")
    new.write_text(text)
    new.chmod(0o644)
    os.replace(new, file)


def start(own_daemon, file, *more):
    return own_daemon(arguments=[*DAEMON, "--config", str(file), *more])


def test_what_can_change_does(own_daemon, place):
    file = place / "config.toml"
    write(file, "[pool]\ntarget = 2\n")
    here = start(own_daemon, file)
    assert here.pool()["target"] == 2
    assert here.internal.get("/v1/pool", headers={"Host": "hutch.example"}).status == 403

    write(file, '[pool]\ntarget = 4\nwait_ms = 50\n[internal]\nhosts = ["hutch.example"]\n')
    line = hang_up(here)
    assert line["event"] == "reloaded" and line["level"] == "info"
    assert line["message"] == "settings have changed"
    assert line["changed"].split(", ") == [
        "internal.hosts [] -> [hutch.example]",
        "pool.target 2 -> 4",
        "pool.ceiling 2 -> 4",
        "pool.wait_ms 30000 -> 50",
    ]
    assert line["needs_restart"] == ""
    wait_until(lambda: here.pool()["warm"] == 4, 20, here.log_text)
    assert here.internal.get("/v1/pool", headers={"Host": "hutch.example"}).status == 200

    write(file, "[pool]\ntarget = 1\n")
    assert "pool.target 4 -> 1" in hang_up(here)["changed"]
    wait_until(lambda: here.pool()["warm"] == 1, 10, here.log_text)
    assert here.internal.get("/v1/pool", headers={"Host": "hutch.example"}).status == 403
    assert here.execute("print('still')")["stdout"] == "still\n"
    assert hang_up(here)["message"] == "no setting has changed"


def test_the_number_of_runs_changes(own_daemon, place):
    file = place / "config.toml"
    write(file, "[runs]\nmax = 1\n[pool]\nwait_ms = 200\n")
    here = start(own_daemon, file)
    first = here.internal.begin_execute("import time; time.sleep(50)", timeout_s=60)
    wait_until(lambda: here.pool()["in_flight"] == 1, 10, here.log_text)
    assert here.execute("print(1)").status == 503
    write(file, "[runs]\nmax = 2\n[pool]\nwait_ms = 5000\n")
    assert "runs.max 1 -> 2" in hang_up(here)["changed"]
    assert here.execute("print(1)")["stdout"] == "1\n"
    first.close()


def test_the_caps_on_answers_change(own_daemon, place):
    file = place / "config.toml"
    write(file, "[pool]\ntarget = 1\n")
    here = start(own_daemon, file)
    code = "print('x' * 5000); open('a', 'w').write('y' * 5000)"
    answer = here.execute(code)
    assert len(answer["stdout"]) == 5001 and answer.paths() == ["a"]
    write(file, '[pool]\ntarget = 1\n[limits]\nstream_bytes = "1KiB"\nfile_bytes = "1KiB"\n')
    changed = hang_up(here)["changed"]
    assert "limits.stream_bytes 1MiB -> 1KiB" in changed
    here.execute("print(1)").ok()  # takes the sandbox that was warm before
    answer = here.execute(code)
    assert len(answer["stdout"]) < 2000 and answer.paths() == []
    assert answer.omitted()["a"]["reason"] == "too_large"


def test_the_log_level_changes(own_daemon, place):
    file = place / "config.toml"
    write(file, '[log]\nlevel = "warn"\n')
    here = start(own_daemon, file)
    here.execute("print(1)").ok()
    assert not requests(here)
    write(file, '[log]\nlevel = "info"\n')
    hang_up(here)
    here.execute("print(1)").ok()
    wait_until(lambda: requests(here), 5, here.log_text)


def test_what_cannot_change_is_named(own_daemon, place):
    file = place / "config.toml"
    write(file, "")
    here = start(own_daemon, file, "--set", "limits.processes=64")
    write(file, "[limits]\ncpus = 0.5\nprocesses = 32\n[runs]\nmax = 8\n")
    for _ in range(2):  # it stays so until the restart
        line = hang_up(here)
        assert line["message"].endswith("; needs a restart: limits.cpus")
        assert line["needs_restart"] == "limits.cpus 1 -> 0.5"
    # --set wins over the file at a reload as at a start.
    assert here.execute("print(1)")["stdout"] == "1\n"


@pytest.mark.parametrize(
    "content, words",
    [
        ("[pool]\ntarget = many\n", ":2:"),
        ("[pool]\ntarget = 0\n", "pool.target must be between 1 and 64, and is 0"),
        ("[pool]\ntagret = 2\n", 'did you mean "pool.target"?'),
        ("[pool]\ntarget = 4\n[limits]\nmemory_bytes = 1\n", "limits.memory_bytes must be between"),
    ],
)
def test_a_bad_file_changes_nothing(own_daemon, place, content, words):
    file = place / "config.toml"
    write(file, "[pool]\ntarget = 2\n")
    here = start(own_daemon, file)
    write(file, content)
    line = hang_up(here)
    assert line["event"] == "reload_refused" and line["level"] == "error"
    assert str(file) in line["reason"] and words in line["reason"]
    assert here.pool()["target"] == 2
    file.unlink()
    assert "No such file" in hang_up(here)["reason"]
    os.mkfifo(file)
    assert "no regular file" in hang_up(here)["reason"]
    assert here.execute("print('goes on')")["stdout"] == "goes on\n"


def test_a_file_that_the_servers_user_cannot_read(own_daemon, place):
    file = place / "config.toml"
    write(file, "[pool]\ntarget = 2\n")
    place.chmod(0o700)
    here = start(own_daemon, file)
    if os.stat(f"/proc/{here.pid}").st_uid == place.stat().st_uid:
        pytest.skip("the server is the owner of the file here")
    line = hang_up(here)
    assert line["event"] == "reload_refused"
    assert "Permission denied" in line["reason"] and "has to be able to read" in line["reason"]
    place.chmod(0o755)
    write(file, "[pool]\ntarget = 3\n")
    assert "pool.target 2 -> 3" in hang_up(here)["changed"]


def test_the_server_keeps_no_descriptor_for_it(own_daemon, place):
    file = place / "config.toml"
    write(file, "[pool]\ntarget = 1\n")
    here = start(own_daemon, file)
    hang_up(here)
    links = [os.readlink(f"/proc/{here.pid}/fd/{n}") for n in os.listdir(f"/proc/{here.pid}/fd")]
    assert not [link for link in links if link.startswith(str(place))]
    assert settings.BINARY not in links
