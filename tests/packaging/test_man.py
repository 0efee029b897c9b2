"""The manual pages: written by the program, and read without a complaint by those who show them."""

import pathlib
import shutil
import subprocess

import pytest
from harness.daemon import run_hutch


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    directory = tmp_path_factory.mktemp("man")
    done = run_hutch("docs", "man", str(directory / "new"))
    assert done.returncode == 0, done
    written = sorted((directory / "new").iterdir())
    assert sorted(done.stdout.split()) == [str(path) for path in written]
    return written


def test_there_is_one_for_each_command(pages):
    listed = run_hutch("--help").stdout.split("Subcommands:")[1].split("\n\n")[0]
    commands = {line.split()[0] for line in listed.splitlines() if line.strip()}
    assert {"serve", "image", "doctor"} <= commands
    expected = {"hutch.1", "hutch-config.5"} | {f"hutch-{name}.1" for name in commands}
    assert {path.name for path in pages} == expected


@pytest.mark.skipif(not shutil.which("groff"), reason="there is no groff")
def test_roff_has_no_complaint(pages):
    for page in pages:
        done = subprocess.run(
            ["groff", "-ww", "-man", "-Tutf8", str(page)],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, ""), page.name
        # A backslash or a request that was not protected eats what follows it.
        assert len(done.stdout) > 500, page.name


@pytest.mark.skipif(not shutil.which("mandoc"), reason="there is no mandoc")
def test_mandoc_has_no_complaint(pages):
    done = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "warning", *map(str, pages)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    # A page has no date: it depends on the program alone.
    complaints = [line for line in done.stdout.splitlines() if "missing date" not in line]
    assert complaints == []


def test_a_page_carries_the_help(pages):
    text = next(path for path in pages if path.name == "hutch-serve.1").read_text()
    for word in (r"\-\-internal", r"\-\-state\-dir", "SIGTERM"):
        assert word in text


def test_the_same_program_writes_the_same_pages(pages, tmp_path):
    assert run_hutch("docs", "man", str(tmp_path)).returncode == 0
    for page in pages:
        assert pathlib.Path(tmp_path, page.name).read_bytes() == page.read_bytes()
