"""`cmake --install` below a prefix of its own: what it puts there finds its parts."""

import json
import os
import shutil
import subprocess

import pytest
from harness import settings
from room import TREE


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    return tmp_path_factory.mktemp("prefix")


def install(prefix):
    done = subprocess.run(
        ["cmake", "--install", str(TREE / "build/release"), "--prefix", str(prefix)],
        capture_output=True, text=True, timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_everything_has_its_place(prefix):
    install(prefix)
    for path in ("bin/hutch", "etc/hutch/config.toml", "share/hutch/images/python/build",
                 "share/man/man1/hutch-serve.1", "share/man/man5/hutch-config.5",
                 "share/bash-completion/completions/hutch",
                 "share/zsh/vendor-completions/_hutch",
                 "share/fish/vendor_completions.d/hutch.fish",
                 "share/doc/hutch/docs/install.md", "lib/systemd/system/hutch.service",
                 "lib/sysusers.d/hutch.conf", "lib/tmpfiles.d/hutch.conf"):
        assert (prefix / path).is_file(), path
    assert os.access(prefix / "share/hutch/images/python/build", os.X_OK)
    unit = (prefix / "lib/systemd/system/hutch.service").read_text()
    assert f"ExecStart={prefix}/bin/hutch serve --config {prefix}/etc/hutch/config.toml\n" in unit
    assert "@" not in unit.replace("@clock", "").split("SystemCallFilter=")[0]


def test_settings_that_are_there_stay(prefix):
    file = prefix / "etc/hutch/config.toml"
    file.write_text("# mine\n")
    assert f"Kept: {file}" in install(prefix)
    assert file.read_text() == "# mine\n"


def test_the_settings_that_are_brought_are_the_defaults(prefix):
    def shown(*words):
        done = subprocess.run([str(prefix / "bin/hutch"), "config", "--json", *words],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    text = (TREE / "packaging/systemd/config.toml").read_text()
    live = prefix / "live.toml"
    # Each line that looks like a setting becomes one.
    lines = [line.removeprefix("# ") if " = " in line else line for line in text.splitlines()]
    live.write_text("\n".join(lines) + "\n")
    values = [
        {row["key"]: row["value"] for row in json.loads(shown("--config", file))["settings"]}
        for file in (str(live), "/dev/null")
    ]
    assert len([line for line in lines if " = " in line]) > 5
    assert values[0] == values[1]


def test_it_finds_its_recipe(prefix, tmp_path):
    shutil.copytree(settings.IMAGE_STATE / "images", tmp_path / "images")
    done = subprocess.run(
        [str(prefix / "bin/hutch"), "image", "build", "python", "--state-dir", str(tmp_path)],
        capture_output=True, text=True, timeout=60,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
    )
    shutil.rmtree(tmp_path / "images")  # half a gigabyte
    assert "is already built" in done.stderr, done
