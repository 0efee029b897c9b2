"""What `hutch` says about itself, and how it refuses what makes no sense: nothing here needs root,
an image or a running server."""

import re
import subprocess

import pytest
from harness import settings
from harness.daemon import run_hutch

USAGE = 64


def refusal(*arguments):
    """Standard error of a call that ends with the code for wrong usage and prints nothing."""
    done = run_hutch(*arguments)
    assert done.returncode == USAGE, done
    assert done.stdout == ""
    return done.stderr


def test_the_serve_help_names_every_exit_code():
    text = run_hutch("serve", "--help").stdout
    for code in (0, 64, 69, 70, 73, 75, 76, 77):
        assert re.search(rf"^ *{code}  ", text, re.MULTILINE), code


@pytest.mark.parametrize("arguments", [["docs", "config"], ["version"], ["help"], ["doctor"]])
def test_standard_output_that_takes_nothing(arguments):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [settings.BINARY, *arguments], stdout=full, stderr=subprocess.PIPE, timeout=60
        )
    assert done.returncode == 70 and b"cannot write to standard output" in done.stderr


@pytest.mark.parametrize("arguments", [["version"], ["--version"]])
def test_the_version(arguments):
    done = run_hutch(*arguments)
    assert re.fullmatch(r"hutch \d+\.\d+\.\d+\n", done.stdout) and done.returncode == 0


def test_the_settings_in_the_tree_are_the_generated_ones():
    assert run_hutch("docs", "config").stdout == (settings.ROOT / "docs" / "config.md").read_text()


def test_every_exit_code_is_in_the_operations_document():
    text = (settings.ROOT / "docs" / "operations.md").read_text()
    for code in (0, 64, 69, 70, 73, 75, 76, 77):
        assert f"| {code} |" in text


@pytest.mark.parametrize(
    "arguments, words",
    [
        ([], "subcommand"),
        (["nonsense"], "nonsense"),
        (["serve", "--nonsense"], "--nonsense"),
        (["serve", "stray"], "stray"),
        (["serve", "--set"], "--set"),
        (["image"], "subcommand"),
        (["docs", "nothing"], "nothing"),
        (["help", "nothing"], "nothing"),
        (["doctor", "--state-dir"], "--state-dir"),
    ],
)
def test_wrong_usage_says_where_to_look(arguments, words):
    text = refusal(*arguments)
    assert words in text and "--help" in text


@pytest.mark.parametrize(
    "setting, words",
    [
        ("limits.memroy_bytes=1", 'did you mean "limits.memory_bytes"?'),
        ("pool.target=0", "pool.target must be between 1 and 64, and is 0"),
        ("pool.target=many", 'pool.target must be an integer, and is "many"'),
        ("limits.memory_bytes=1GB", "limits.memory_bytes must be a size"),
        ("internal.listen=0.0.0.0:8700", "internal.listen must be a loopback address"),
        ("public.listen=0.0.0.0:8080", "public.listen must be a loopback address"),
        ("internal.listen=nowhere", "ADDRESS:PORT"),
        ("engine=docker", 'engine must be "native"'),
        ("server.user=root", "server.user must not be root"),
        ("limits.disk_bytes=1GiB", "must not exceed limits.memory_bytes"),
        ("limits.file_bytes=17MiB", "must not exceed limits.files_bytes"),
        ("testing.fail_step=pivot", "unknown key"),
        ("engine=fake", 'engine must be "native"'),
        ("pool.target", "write it as key=value"),
    ],
)
def test_a_setting_that_makes_no_sense(setting, words):
    text = refusal("serve", "--set", setting)
    assert text.startswith("hutch: ") and words in text


def test_a_pool_that_should_grow(tmp_path):
    text = refusal("serve", "--set", "pool.target=2", "--set", "pool.ceiling=3")
    assert "pool.ceiling (3) must equal pool.target (2)" in text


@pytest.mark.parametrize(
    "content, place, words",
    [
        ("[pool]\ntarget = 3\ntaget = 4\n", ":3:1: ", 'did you mean "pool.target"?'),
        ("[pol]\ntarget = 3\n", ":1:2: ", 'did you mean "pool"?'),
        ("[pool]\ntarget = 3\nwait_ms = soon\n", ":3:", ""),
        ("[limits]\ncpus = 'two'\n", ":2:8: ", "limits.cpus must be a number"),
        ("[limits]\nmemory_bytes = 7\n", ":2:16: ", "between 64MiB and 1TiB, and is 7B"),
    ],
)
def test_a_file_that_makes_no_sense_is_named_with_its_place(tmp_path, content, place, words):
    file = tmp_path / "hutch.toml"
    file.write_text(content)
    text = refusal("serve", "--config", file)
    assert f"{file}{place}" in text and words in text


def test_a_file_that_is_not_there():
    text = refusal("serve", "--config", "/nonexistent/hutch.toml")
    assert "/nonexistent/hutch.toml: No such file" in text


def test_a_flag_wins_over_a_setting_and_a_setting_over_the_file(tmp_path):
    file = tmp_path / "hutch.toml"
    file.write_text('[internal]\nlisten = "one"\n')
    two = ["--set", "internal.listen=two"]
    assert '"one"' in refusal("serve", "--config", file)
    assert '"two"' in refusal("serve", "--config", file, *two)
    assert '"three"' in refusal("serve", "--internal", "three", "--config", file, *two)
