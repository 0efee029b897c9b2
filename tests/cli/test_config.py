"""`hutch config`: what the settings come to, and where each value comes from. Needs no root."""

import json
import os
import pathlib
import subprocess
import tempfile

import pytest
from harness import settings
from harness.client import strict_json
from harness.daemon import run_hutch

USAGE = 64


def config(*arguments, **more):
    done = run_hutch("config", *arguments, **more)
    assert done.returncode == 0 and done.stderr == "", done
    return done.stdout


def listed(*arguments, **more):
    """Key to (value, origin)."""
    answer = strict_json(config("--json", *arguments, **more))
    return {row["key"]: (row["value"], row["origin"]) for row in answer["settings"]}


@pytest.fixture
def home():
    """A home of its own, so that no file of this machine counts."""
    with tempfile.TemporaryDirectory() as path:
        place = pathlib.Path(path)
        (place / ".config" / "hutch").mkdir(parents=True)
        yield place


def at_home(home, **more):
    kept = {key: value for key, value in os.environ.items() if not key.startswith("XDG_")}
    return {"env": {**kept, "HOME": str(home), **more}}


def test_every_value_has_its_origin(tmp_path):
    file = tmp_path / "hutch.toml"
    file.write_text('[limits]\nmemory_bytes = "1GiB"\ncpus = 2\n\n[public]\nhosts = ["a", "b"]\n')
    rows = listed(
        "--config", file, "--set", "limits.cpus=0.5", "--internal", "[::1]:0", "--state-dir", "/x/"
    )
    assert rows["limits.memory_bytes"] == (1 << 30, f"{file}:2")
    assert rows["public.hosts"] == (["a", "b"], f"{file}:6")
    assert rows["limits.cpus"] == (0.5, "--set")
    assert rows["internal.listen"] == ("[::1]:0", "--internal")
    assert rows["state_dir"] == ("/x", "--state-dir")
    assert rows["pool.target"] == (3, "default")
    assert "testing.fail_step" not in rows


def test_the_table_has_a_line_for_each_setting_of_the_reference():
    lines = config().splitlines()
    keys = [line.split()[0] for line in lines[1:]]
    reference = run_hutch("docs", "config").stdout
    assert lines[0].split() == ["KEY", "VALUE", "ORIGIN"]
    assert keys == [line.split("`")[1] for line in reference.splitlines() if line.startswith("| `")]


@pytest.mark.parametrize(
    "setting, printed",
    [
        ("limits.memory_bytes=1048576KiB", "1GiB\n"),
        ("limits.cpus=1.5", "1.5\n"),
        ("image=other", "other\n"),
        ("public.hosts=a,b", "a,b\n"),
        ("public.hosts=", "\n"),
        ("pool.wait_ms=7", "7\n"),
    ],
)
def test_one_key_prints_what_set_would_take(setting, printed):
    key = setting.split("=")[0]
    value = config(key, "--set", setting)
    assert value == printed
    assert config(key, "--set", f"{key}={value.rstrip()}") == printed


def test_a_group_prints_its_settings():
    assert [line.split()[0] for line in config("pool").splitlines()[1:]] == [
        f"pool.{name}" for name in ("target", "ceiling", "wait_ms", "parallel_creates", "line_max")
    ]


def test_one_key_as_json():
    rows = json.loads(config("runs.max", "--json"))["settings"]
    assert rows == [{"key": "runs.max", "value": 32, "origin": "default", "changes": "at SIGHUP"}]


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["nothing"], "unknown key"),
        (["pool.targte"], 'did you mean "pool.target"?'),
        (["--set", "pool.target=0"], "pool.target must be between 1 and 64, and is 0"),
        (["--set", "pol.target=1"], "unknown key"),
        (["--config", "/nonexistent/hutch.toml"], "No such file"),
        (["--internal", "0.0.0.0:1"], "must be a loopback address"),
        (["runs.max", "--set", "engine=docker"], "engine must be"),
    ],
)
def test_what_makes_no_sense_is_refused_as_by_serve(arguments, words):
    done = run_hutch("config", *arguments)
    assert done.returncode == USAGE and done.stdout == ""
    assert done.stderr.startswith("hutch: ") and words in done.stderr
    if arguments[0].startswith("-"):
        assert run_hutch("serve", *arguments).stderr == done.stderr


def test_a_bad_file_is_named_with_its_place(tmp_path):
    file = tmp_path / "hutch.toml"
    file.write_text("[pool]\ntaget = 3\n")
    done = run_hutch("config", "--config", file)
    assert done.returncode == USAGE and f"{file}:2:1: unknown key" in done.stderr


def test_the_file_in_the_home_is_read_by_itself(home):
    if pathlib.Path("/etc/hutch/config.toml").exists() and os.geteuid() == 0:
        pytest.skip("this machine has a file for root")
    file = home / ".config" / "hutch" / "server.toml"
    assert listed(**at_home(home))["runs.max"] == (32, "default")
    file.write_text("[runs]\nmax = 5\n")
    file.chmod(0o600)
    assert listed(**at_home(home))["runs.max"] == (5, f"{file}:2")
    assert listed("--config", "/dev/null", **at_home(home))["runs.max"] == (32, "default")
    # serve reads the same: what it refuses, it names.
    file.write_text("[runs]\nmax = 0\n")
    for command in ("config", "serve"):
        done = run_hutch(command, **at_home(home))
        assert done.returncode == USAGE and f"{file}:2:7: runs.max must be" in done.stderr
    file.write_text("[runs]\nmax = 5\n")
    file.chmod(0o666)
    done = run_hutch("config", **at_home(home))
    assert done.returncode == USAGE and f"chmod go-w {file}" in done.stderr
    elsewhere = at_home(home, XDG_CONFIG_HOME=str(home / "other"))
    assert listed(**elsewhere)["runs.max"] == (32, "default")


def test_the_file_for_root_comes_first(home):
    """In a mount namespace of its own, where /etc is a copy that the test may write to."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    (home / ".config" / "hutch" / "server.toml").write_text("[runs]\nmax = 5\n")
    (home / "etc").mkdir()
    script = (
        f"mount --bind {home}/etc /etc && mkdir /etc/hutch && "
        f"echo 'runs.max = 7' > /etc/hutch/config.toml && {settings.BINARY} config runs.max --json"
    )
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, **at_home(home)
    )
    row = json.loads(done.stdout)["settings"][0]
    assert (row["value"], row["origin"]) == (7, "/etc/hutch/config.toml:1")


def test_the_environment_that_counts_is_named():
    if os.geteuid() == 0:
        user = {"user": 65534, "group": 65534, "extra_groups": []}
    else:
        user = {}
    for variables, origin, place in [
        ({"HOME": "/home/x"}, "environment HOME", "/home/x/.local/state/hutch"),
        ({"HOME": "/home/x", "XDG_STATE_HOME": "/s"}, "environment XDG_STATE_HOME", "/s/hutch"),
    ]:
        answer = listed("state_dir", env=variables, **user)
        assert answer == {"state_dir": (place, origin)}
