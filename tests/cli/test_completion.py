"""`hutch completion`: the three scripts in the three real shells; bash and zsh at a terminal, where
Tab is pressed."""

import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import time

import pytest
from harness import settings
from harness.daemon import run_hutch

USAGE = 64
SHELLS = ["bash", "zsh", "fish"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with the binary under its name, the scripts, and files to complete."""
    path = tmp_path_factory.mktemp("completion")
    (path / "bin").mkdir()
    (path / "bin" / "hutch").symlink_to(pathlib.Path(settings.BINARY).resolve())
    (path / "here" / "some dir").mkdir(parents=True)
    (path / "here" / "some file.toml").write_text("")
    for shell in SHELLS:
        (path / shell).write_text(run_hutch("completion", shell).stdout)
    return path


def environment(place):
    return {
        "PATH": f"{place}/bin:{os.environ['PATH']}",
        "HOME": str(place),
        "TERM": "xterm",
        "LC_ALL": "C.UTF-8",
        "COLUMNS": "200",
        "LINES": "50",
    }


def need(shell):
    if not shutil.which(shell):
        pytest.skip(f"there is no {shell}: ./dev test installs it")


def run_shell(place, command, script):
    done = subprocess.run(
        [*command, script],
        capture_output=True,
        text=True,
        timeout=30 * settings.SLACK,
        env=environment(place),
        cwd=place / "here",
    )
    assert done.returncode == 0 and done.stderr == "", done
    return sorted(line for line in done.stdout.splitlines() if line)


def bash_offers(place, line):
    """What bash would show, by the function it calls: it takes lines apart at spaces and "="."""
    words = [word for part in line.split(" ") for word in re.split("(=)", part)] or [""]
    words = [word for i, word in enumerate(words) if word or i == len(words) - 1]
    quoted = " ".join(f"'{word}'" for word in words)
    script = f"""
        source {place}/bash
        COMP_WORDS=({quoted}) COMP_CWORD={len(words) - 1}
        _hutch
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    return run_shell(place, ["bash", "--norc", "-c"], script)


def fish_offers(place, line):
    script = f"source {place}/fish; complete -C '{line}'"
    lines = run_shell(place, ["fish", "--no-config", "-c"], script)
    return sorted(line.split("\t")[0] for line in lines)


CASES = [
    ("hutch im", ["image"]),
    ("hutch image r", ["rm"]),
    ("hutch image rm --fo", ["--force"]),
    ("hutch image build --format ", ["auto", "directory", "erofs"]),
    ("hutch image build --recipe some python --format e", ["erofs"]),
    ("hutch completion ", ["bash", "fish", "zsh"]),
    ("hutch config limits.c", ["limits.cpus"]),
    ("hutch config --set runs.max=3 pool.wa", ["pool.wait_ms"]),
    ("hutch serve --set runs.", ["runs.max="]),
    ("hutch help ver", ["version"]),
    ("hutch docs exi", ["exit-codes"]),
]


@pytest.mark.parametrize("line, offered", CASES)
@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_what_is_offered(place, shell, line, offered):
    need(shell)
    assert {"bash": bash_offers, "fish": fish_offers}[shell](place, line) == offered


def test_a_value_behind_an_equals_sign(place):
    assert bash_offers(place, "hutch image build --format=d") == ["directory"]
    assert bash_offers(place, "hutch image build --format=auto --fo") == ["--force", "--format"]


def test_names_of_files(place):
    assert bash_offers(place, "hutch serve --config some") == ["some dir", "some file.toml"]
    assert bash_offers(place, "hutch serve --state-dir some") == ["some dir"]
    need("fish")
    assert fish_offers(place, "hutch serve --state-dir some") == ["some dir/"]
    assert "some file.toml" in fish_offers(place, "hutch serve --config some")


def commands_of_the_reference():
    """Each command with its flags, as the help has them."""
    text = run_hutch("docs", "commands").stdout
    for name, block in re.findall(r"^## hutch ?([^\n]*)\n\n```\n(.*?)\n```", text, re.M | re.S):
        flags = re.findall(r"^  (-[^ ]+)", block, re.M)
        yield name, sorted(flag for group in flags for flag in group.split(","))


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_every_command_and_flag_is_offered(place, shell):
    need(shell)
    offers = {"bash": bash_offers, "fish": fish_offers}[shell]
    known = dict(commands_of_the_reference())
    assert {"", "serve", "image rm", "completion", "docs api"} <= set(known)
    for name, flags in known.items():
        line = f"hutch {name} ".replace("  ", " ")
        longs = [flag for flag in flags if flag.startswith("--")]
        assert [flag for flag in offers(place, line + "--") if flag.startswith("--")] == longs, name
        below = [one.split()[-1] for one in known if one and one.rpartition(" ")[0] == name]
        if below:
            assert set(below) <= set(offers(place, line)), name


class Terminal:
    """An interactive shell at a terminal of its own."""

    def __init__(self, place, command):
        self.text = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(place / "here")
            os.execvpe(command[0], command, environment(place))

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def until(self, words, seconds=15):
        """Reads until the words are on the screen, and forgets what came before."""
        deadline = time.monotonic() + seconds * settings.SLACK
        while words not in self.text:
            left = deadline - time.monotonic()
            if left < 0 or not select.select([self.fd], [], [], left)[0]:
                raise AssertionError(f"no {words!r} in {self.text!r}")
            self.text += os.read(self.fd, 65536).decode(errors="replace")
            self.text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\x07|\r", "", self.text)
            self.text = re.sub(r"[^\x08]\x08", "", self.text)  # what is written over
        self.text = self.text.split(words, 1)[1]

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


STARTS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source <(hutch completion bash)"),
    "zsh": (
        ["zsh", "-f", "-i"],
        "autoload -Uz compinit && compinit -u -D && source <(hutch completion zsh)",
    ),
}


@pytest.fixture(params=["bash", "zsh"])
def terminal(request, place):
    need(request.param)
    command, setup = STARTS[request.param]
    here = Terminal(place, command)
    here.type(f"PS1='at-''rest> '; {setup}; echo se''t-up\n")
    here.until("set-up")
    here.until("at-rest> ")
    yield here
    here.end()


def test_tab_at_a_terminal(terminal):
    terminal.type("hutch vers\t")
    terminal.until("hutch version ")
    terminal.type("\x15hutch image pru\t--dr\t")
    terminal.until("prune --dry-run")
    terminal.type("\x15hutch image build --format d\t")
    terminal.until("--format directory")
    terminal.type("\x15hutch image build --format=er\t")
    terminal.until("--format=erofs")
    terminal.type("\x15hutch serve --state-dir some\t")
    terminal.until("some\\ dir/")
    terminal.type("\x15hutch serve --set log.\t")
    terminal.until("--set log.level=")
    terminal.type("\x15hutch config limits.cp\t")
    terminal.until("limits.cpus")
    terminal.type("\x15hutch image \t\t")
    terminal.until("prune")


def test_the_zsh_script_as_a_file_of_fpath(place):
    need("zsh")
    (place / "fpath").mkdir()
    shutil.copy(place / "zsh", place / "fpath" / "_hutch")
    here = Terminal(place, ["zsh", "-f", "-i"])
    try:
        here.type("PS1='at-''rest> '; fpath=($HOME/fpath $fpath); autoload -Uz compinit; ")
        here.type("compinit -u -D; echo se''t-up\n")
        here.until("set-up")
        here.until("at-rest> ")
        for _ in range(2):  # the first Tab loads the file
            here.type("\x15hutch vers\t")
            here.until("hutch version ")
    finally:
        here.end()


@pytest.mark.parametrize("arguments", [[], ["tcsh"], ["bash", "zsh"]])
def test_other_shells_are_refused(arguments):
    done = run_hutch("completion", *arguments)
    assert done.returncode == USAGE and done.stdout == "" and "--help" in done.stderr
