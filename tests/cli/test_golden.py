"""The exact output of every command and of every --help. What differs from machine to machine and
from run to run is masked. A command that is new has to be put in here: the first test says how.

UPDATE_GOLDEN=1 writes the files of tests/cli/golden anew; read the difference before committing it.
"""

import difflib
import json
import os
import pathlib
import re
import shutil
import tempfile

import pytest
from harness import settings
from harness.daemon import run_hutch
from test_image import NEW, OLD, Store

GOLDEN = pathlib.Path(__file__).parent / "golden"

# Commands whose output is held somewhere else, and where.
HELD_ELSEWHERE = {
    "docs commands": "tests/cli/test_golden.py: composed of all the helps",
    "docs config": "docs/config.md",
    "docs api": "spec/openapi.yaml",
    "docs errors": "docs/errors.md",
    "docs man": "tests/packaging/test_man.py",
    "doctor": "src/plan/host_test.cc: made-up hosts; here only which lines there are",
    "plan": "tests/plan/default.json; here only which parts there are",
    "image build": "tests/cli/test_golden.py: with an image that is there already",
    "image unpack": "tests/cli/test_golden.py: with an image that is a directory already",
}


def check_golden(name, text):
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
        return
    assert path.exists(), f"{path} is missing: run with UPDATE_GOLDEN=1 and read what it wrote"
    expected = path.read_text()
    difference = difflib.unified_diff(expected.splitlines(), text.splitlines(), name, "now")
    assert text == expected, "\n".join(difference)


def commands_below(name=""):
    """Every command, as its help lists it: the names, hutch itself as the empty one."""
    yield name
    text = run_hutch(*name.split(), "--help").stdout
    _, found, rest = text.partition("\nSubcommands:\n")
    if not found:
        return
    for line in rest.split("\n\n")[0].splitlines():
        if match := re.match(r"  ([a-z][a-z-]*)( |$)", line):
            yield from commands_below(f"{name} {match[1]}".strip())


COMMANDS = list(commands_below())
HELPS = {command: f"help_{command.replace(' ', '_') or 'hutch'}.txt" for command in COMMANDS}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help(command):
    done = run_hutch(*command.split(), "--help")
    assert done.returncode == 0 and done.stderr == ""
    check_golden(HELPS[command], done.stdout)
    assert run_hutch("help", *command.split()).stdout.rstrip() == done.stdout.rstrip()


def test_no_help_is_left_of_a_command_that_is_gone():
    assert {path.name for path in GOLDEN.glob("help_*")} == set(HELPS.values())


def test_the_help_ends_with_three_commands_to_start_with():
    tail = run_hutch("help").stdout.rstrip().split("Start here:\n")[1].splitlines()
    assert len(tail) == 3 and all(line.startswith("  hutch ") for line in tail)
    for line in tail:
        command = line.split()[1]
        assert command in COMMANDS


# --- output --------------------------------------------------------------------------------------


class World:
    """What the commands below look at: a store of made-up images, a home, no settings."""

    def __init__(self):
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="hutch-golden-", dir="/tmp"))
        self.place.chmod(0o755)
        self.state = self.place / "state"
        self.state.mkdir(mode=0o755)
        self.store = Store(self.state)
        self.store.add(OLD)
        self.store.add(NEW, created="2026-02-01T00:00:00Z", directory=True)
        self.store.name("tiny", NEW)
        (self.place / "hutch.toml").write_text('[limits]\nmemory_bytes = "1GiB"\n')

    def run(self, *arguments):
        keep = {key: os.environ[key] for key in ("PATH",) if key in os.environ}
        filled = [argument.replace("{place}", str(self.place)) for argument in arguments]
        return run_hutch(*filled, env={**keep, "HOME": str(self.place)}, cwd=self.place)

    def mask(self, text):
        text = text.replace(str(self.place), "{place}")
        text = re.sub(r"\d+(\.\d+)? (kB|MB)\b", "# kB", text)
        text = re.sub(r'"(freed_bytes|size_bytes)":\d+', r'"\1":0', text)
        text = re.sub(r"hutch \d+\.\d+\.\d+", "hutch #.#.#", text)
        return text


@pytest.fixture
def world():
    here = World()
    yield here
    shutil.rmtree(here.place, ignore_errors=True)


STATE = ["--state-dir", "{place}/state"]
OUTPUTS = {
    "version": ["version"],
    "config": ["config", "--config", "{place}/hutch.toml", *STATE, "--set", "limits.cpus=2"],
    "config_key": ["config", "limits.memory_bytes", "--config", "{place}/hutch.toml"],
    "config_group": ["config", "limits", "--config", "{place}/hutch.toml"],
    "config_json": ["config", "pool", "--json", "--config", "{place}/hutch.toml"],
    "config_unknown": ["config", "limit.cpus", *STATE],
    "config_bad": ["config", "--set", "runs.max=0"],
    "docs": ["docs"],
    "docs_json": ["docs", "--json"],
    "docs_exit-codes": ["docs", "exit-codes"],
    "completion_bash": ["completion", "bash"],
    "completion_zsh": ["completion", "zsh"],
    "completion_fish": ["completion", "fish"],
    "image_ls": ["image", "ls", *STATE],
    "image_ls_json": ["image", "ls", "--json", *STATE],
    "image_ls_empty": ["image", "ls", "--state-dir", "{place}/nothing"],
    "image_path": ["image", "path", "tiny", *STATE],
    "image_path_json": ["image", "path", "tiny", "--json", *STATE],
    "image_path_unknown": ["image", "path", "other", *STATE],
    "image_unpack": ["image", "unpack", "tiny", *STATE],
    "image_rm": ["image", "rm", OLD[:12], *STATE],
    "image_rm_json": ["image", "rm", "tiny", "--force", "--json", *STATE],
    "image_rm_named": ["image", "rm", "tiny", *STATE],
    "image_rm_unknown": ["image", "rm", "other", *STATE],
    "image_prune": ["image", "prune", *STATE],
    "image_prune_dry": ["image", "prune", "--dry-run", *STATE],
    "image_prune_json": ["image", "prune", "--cache", "--json", *STATE],
    "image_build_unknown": ["image", "build", "nothing", "--recipe", "{place}", *STATE],
    "pool_nobody": ["pool", "--url", "http://127.0.0.1:1"],
    "run_no_file": ["run", "{place}/nothing.py", "--url", "http://127.0.0.1:1"],
    "run_nobody": ["run", "-c", "1", "--url", "http://127.0.0.1:1"],
    "serve_bad": ["serve", "--internal", "0.0.0.0:1"],
    "usage_unknown": ["nothing"],
    "usage_flag": ["image", "rm", "--nothing"],
}
# Those that need a server, or whose own test is below.
OTHER_OUTPUTS = {"serve", "pool", "run", "plan", "doctor", "help"}


def test_every_command_has_its_output_held():
    """A new command: an entry in OUTPUTS, or a test below and its name in OTHER_OUTPUTS."""
    leaves = {one for one in COMMANDS if one and not any(c.startswith(one + " ") for c in COMMANDS)}
    run = {
        command
        for arguments in OUTPUTS.values()
        for command in COMMANDS
        if command and arguments[: len(command.split())] == command.split()
    }
    assert leaves - run - OTHER_OUTPUTS - set(HELD_ELSEWHERE) == set()


@pytest.mark.parametrize("name", OUTPUTS)
def test_the_output(world, name):
    done = world.run(*OUTPUTS[name])
    command = " ".join(OUTPUTS[name]).replace("{place}", "DIR")
    text = f"$ hutch {command}\n{done.stdout}"
    if done.stderr:
        text += f"--- standard error\n{done.stderr}"
    if done.returncode:
        text += f"--- exit code {done.returncode}\n"
    check_golden(f"{name}.txt", world.mask(text))


def test_the_version_as_json(world):
    answer = json.loads(world.run("version", "--json").stdout)
    assert re.fullmatch(r"unknown|[0-9a-f]{12}(-dirty)?", answer.pop("commit"))
    assert re.fullmatch(r"(g\+\+|Clang) \d+\.\d+\.\d+.*", answer.pop("compiler"))
    assert re.fullmatch(r"\d+\.\d+\.\d+", answer.pop("version"))
    assert answer == {"testing": False, "api": "v1", "state_version": 1, "oldest_state_version": 1}


def test_the_documents_are_those_of_the_tree():
    for topic, path in [("config", "docs/config.md"), ("errors", "docs/errors.md")]:
        assert run_hutch("docs", topic).stdout == (settings.ROOT / path).read_text()
    assert run_hutch("docs", "api").stdout == (settings.ROOT / "spec/openapi.yaml").read_text()


def test_the_commands_document_is_every_help():
    text = run_hutch("docs", "commands").stdout
    for command in COMMANDS:
        title = f"hutch {command}".strip()
        help_text = run_hutch(*command.split(), "--help").stdout.strip("\n")
        assert f"\n## {title}\n\n```\n{help_text}\n```\n" in text
    assert text.count("\n## ") == len(COMMANDS)


def test_the_full_reference_has_every_part():
    text = run_hutch("docs", "--full").stdout
    headings = [line for line in text.splitlines() if re.match("#{1,2} ", line)]
    assert headings[1:6] == ["## Commands", "## Settings", "## HTTP API", "## Exit codes",
                             "## Error texts"]
    assert text.count("\n# ") == 0 and text.startswith("# hutch ")
    for part in ("commands", "config", "exit-codes", "errors"):
        for line in run_hutch("docs", part).stdout.splitlines():
            assert line in text, line
    for command in COMMANDS:
        assert f"### hutch {command}".rstrip() in text
    assert "operationId: execute" in text


def test_the_lines_of_the_doctor(world):
    rows = json.loads(world.run("doctor", "--json", *STATE).stdout)["findings"]
    lines = world.run("doctor", *STATE).stdout.splitlines()
    shown = [line.split()[1] for line in lines if re.match("(PASS|CAUTION|FAIL|SKIPPED) ", line)]
    assert shown == [row["name"] for row in rows] and len(shown) > 10


def test_the_parts_of_a_plan(world):
    answer = json.loads(world.run("plan", "--json", *STATE, "--image", NEW).stdout or "{}")
    assert isinstance(answer, dict)


def test_the_pool(daemon):
    daemon.wait_warm()
    done = run_hutch("pool", "--url", daemon.internal.url)
    assert re.fullmatch(
        r"warm           3\ntarget         3\nin_flight      0\ncreated_total  \d+\n", done.stdout
    )


def test_the_ready_line(own_daemon):
    here = own_daemon()
    ready = here.internal.url, here.public.url
    assert all(re.fullmatch(r"http://127\.0\.0\.1:\d+", url) for url in ready)
    for record in here.log_records():
        assert list(record)[:5] == ["time", "level", "process", "event", "message"]


def test_a_run(daemon):
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    done = run_hutch("run", "-q", "-c", code, "--url", daemon.internal.url)
    assert (done.stdout, done.stderr, done.returncode) == ("out\n", "err\n", 3)


def test_nothing_is_coloured(world):
    """Whatever NO_COLOR says: there is no colour to leave out."""
    for arguments in OUTPUTS.values():
        done = world.run(*arguments)
        if arguments[0] != "completion":
            assert "\x1b" not in done.stdout + done.stderr


# --- errors --------------------------------------------------------------------------------------


def documented_errors():
    """Status and pattern of each row of the first table."""
    text = (settings.ROOT / "docs" / "errors.md").read_text().split("## Commands")[0]
    for status, words in re.findall(r"^\| (\d+) \| `(.*?)` \|", text, re.M):
        yield int(status), re.compile(re.sub(r"<[^>]*>", ".*", re.escape(words)), re.S)


ANSWERS = sorted((settings.ROOT / "tests" / "api" / "crusoe").glob("*.http"))


@pytest.mark.parametrize("path", ANSWERS, ids=lambda path: path.stem)
def test_every_error_of_the_api_is_documented(path):
    known = list(documented_errors())
    text = path.read_text()
    status = re.search(r"^HTTP/1\.1 (\d+)", text, re.M)
    for line in re.findall(r'^(\{"error":.*\})\r?$', text, re.M):
        words = json.loads(line)["error"]
        assert any(
            code == int(status[1]) and pattern.fullmatch(words) for code, pattern in known
        ), f"docs/errors.md has no row for {status[1]} {words}"
