"""Runs every attack of this folder, and checks what came back and what is left.

A file named A<nn>_<what>.py or B<nn>_<what>.py is one attack; those of B say which file and which
assumption they are made against. Its prelude decides where it runs: those in
`BESIDE` are run on the host, beside the daemon; all others are the code of a run.
`VERDICT SAFE` in the output is a pass, each `BREACH:` line is a finding. An attack with an entry in
`sandbox_checks.CHECKS` is judged by that function as well, or instead. After each one the daemon
is audited.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import pytest
from harness import settings
from sandbox_checks import CHECKS, safe

HERE = pathlib.Path(__file__).resolve().parent
BESIDE = {"A28", "A32", "A33", "A39"}

# The attacks whose bare run says whether they can succeed at all. Left out: bombs, signals, and
# those that print no verdict of their own.
CONTROLS = "A01 A02 A03 A04 A05 A06 A07 A08 A09 A10 A13 A30 A34 A36".split()


def attacks():
    """{name: file}, in order."""
    return {path.name.split("_")[0]: path for path in sorted(HERE.glob("[AB][0-9]*.py"))}


def source(name):
    kind = "http" if name in BESIDE else "guest"
    prelude = (HERE / f"prelude_{kind}.py").read_text()
    return prelude + "\n" + attacks()[name].read_text()


@pytest.mark.parametrize("name", [name for name in attacks() if name not in BESIDE])
def test_inside(daemon, host_canary, name):
    CHECKS.get(name, safe)(daemon, source(name))


@pytest.mark.parametrize("name", sorted(BESIDE))
def test_beside(daemon, tmp_path, name):
    program = tmp_path / f"{name}.py"
    program.write_text(source(name))
    environment = {
        **os.environ,
        "SBX_URL": daemon.public.url,
        "SBX_INTERNAL_URL": daemon.internal.url,
        "SBX_TOKEN_A": settings.CANARY,
    }
    done = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        timeout=170,
        env=environment,
        cwd=tmp_path,
    )
    assert "VERDICT SAFE" in done.stdout and "BREACH" not in done.stdout, (
        done.stdout + done.stderr[-2000:]
    )
    if name == "A28":
        for place in ("/tmp/x", "/etc/x", "/x", str(tmp_path / "x"), str(tmp_path.parent / "x")):
            assert not os.path.exists(place), f"{place} was written on the host"
    log = daemon.log_path.read_bytes()
    assert b"\x1b" not in log and settings.CANARY.encode() not in log
    daemon.log_records()


@pytest.mark.control
@pytest.mark.parametrize("name", CONTROLS)
def test_control(name):
    """The same attack on the bare host, as a user without privilege, finds something."""
    with tempfile.TemporaryDirectory() as place, open("/etc/passwd") as leaked:
        os.chown(place, 65534, 65534)
        done = subprocess.run(
            ["/usr/bin/python3", "-c", source(name)],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=place,
            env={"PATH": "/usr/bin:/bin", "HOME": place, "SBX_TEST_CANARY": settings.CANARY},
            user=65534,
            group=65534,
            extra_groups=[],
            pass_fds=(leaked.fileno(),) if name == "A10" else (),
        )
    assert "VERDICT BREACH" in done.stdout, done.stdout[-2000:] + done.stderr[-2000:]
