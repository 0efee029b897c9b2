"""`hutch doctor`, for root, for others, and for root asking about others."""

import json
import os
import re
import shutil

import pytest
from harness import settings
from harness.daemon import new_state_dir, run_hutch

UNSUPPORTED, USAGE, PRIVILEGE = 69, 64, 77
AS_NOBODY = {
    "user": 65534,
    "group": 65534,
    "extra_groups": [],
    "env": {"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
}


@pytest.fixture
def state():
    path = new_state_dir()
    yield path
    shutil.rmtree(path, ignore_errors=True)


def findings(done):
    return {one["name"]: one for one in json.loads(done.stdout)["findings"]}


def test_every_line_is_documented_in_its_order(state):
    done = run_hutch("doctor", "--state-dir", state)
    lines = re.findall(r"^(?:PASS|CAUTION|FAIL|SKIPPED) +(\w+) ", done.stdout, re.M)
    text = (settings.ROOT / "docs" / "doctor.md").read_text()
    assert lines == re.findall(r"^\| `(\w+)`", text, re.M)


@pytest.mark.as_root
def test_each_caution_and_each_failure_has_a_remedy(state):
    for more in ({}, AS_NOBODY):
        found = findings(run_hutch("doctor", "--json", "--state-dir", state, **more))
        for one in found.values():
            assert bool(one["remedy"]) == (one["verdict"] in ("CAUTION", "FAIL")), one
            assert one["meaning"].endswith("."), one


@pytest.mark.as_root
def test_root_is_fit_here(state):
    done = run_hutch("doctor", "--json", "--state-dir", state)
    assert done.returncode == 0 and json.loads(done.stdout)["fit"] is True
    assert findings(done)["subordinate_ids"]["verdict"] == "SKIPPED"


@pytest.mark.as_root
def test_an_ordinary_user_is_told_the_line_to_add(state):
    done = run_hutch("doctor", "--json", "--state-dir", state, **AS_NOBODY)
    assert done.returncode == PRIVILEGE
    found = findings(done)
    assert found["privilege"]["meaning"].startswith("Rootless")
    wanted = r"echo 'nobody:\d+:65536' \| sudo tee -a /etc/subuid /etc/subgid"
    assert re.fullmatch(wanted, found["subordinate_ids"]["remedy"])


@pytest.mark.skipif(not settings.ROOTLESS, reason="about the user of tests without root")
def test_an_ordinary_user_who_has_everything_is_fit(state):
    waive = ("--set", "waive=memory,processes,cpus")
    done = run_hutch("doctor", "--json", "--state-dir", state, *waive)
    assert done.returncode == 0, done.stdout
    found = findings(done)
    assert found["subordinate_ids"]["verdict"] == found["id_map_tools"]["verdict"] == "PASS"


@pytest.mark.as_root
def test_root_asks_about_an_ordinary_user(state):
    done = run_hutch("doctor", "--json", "--user", "nobody", "--state-dir", state)
    assert done.returncode == PRIVILEGE
    assert "nobody" in findings(done)["subordinate_ids"]["remedy"]
    behind = {**os.environ, "SUDO_USER": "nobody"}
    again = run_hutch("doctor", "--json", "--rootless", "--state-dir", state, env=behind)
    assert findings(again)["subordinate_ids"] == findings(done)["subordinate_ids"]


@pytest.mark.as_root
@pytest.mark.parametrize("flags", [["--user", "nobody-of-that-name"], ["--rootless"]])
def test_a_user_that_is_not_known_is_asked_for(flags):
    without = {key: value for key, value in os.environ.items() if key != "SUDO_USER"}
    done = run_hutch("doctor", *flags, env=without)
    assert done.returncode == USAGE and done.stdout == "" and "user" in done.stderr


@pytest.mark.as_root
def test_a_start_with_few_descriptors_names_their_limit(state):
    few = ["prlimit", "--nofile=48:48", settings.BINARY]
    done = run_hutch(*few[1:], "serve", "--state-dir", state, binary=few[0])
    assert done.returncode == UNSUPPORTED
    assert "48 files (ulimit -Hn)" in done.stderr and "prlimit --nofile=65536" in done.stderr


def test_a_limit_that_is_waived_without_need_is_a_caution(state):
    done = run_hutch("doctor", "--json", "--set", "waive=memory", "--state-dir", state)
    found = findings(done)
    if found["cgroups"]["verdict"] == "PASS":
        assert found["waived"]["verdict"] == "CAUTION" and "memory" in found["waived"]["meaning"]
