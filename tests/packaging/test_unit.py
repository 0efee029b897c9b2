"""The unit, and the recipe of a container, as texts. test_deb.py runs the unit under systemd."""

import re
import subprocess

import pytest
import yaml
from room import TREE

UNIT = TREE / "packaging/systemd/hutch.service.in"
COMPOSE = TREE / "packaging/oci/compose.yaml"
# What `systemd-analyze security` may find at most; 0 is nothing exposed, 10 everything. The warden
# makes sandboxes as root, and docs/install.md says what each open item is needed for.
EXPOSURE_MAX = 4.8


@pytest.fixture(scope="module")
def exposure(tmp_path_factory):
    unit = tmp_path_factory.mktemp("unit") / "hutch.service"
    text = UNIT.read_text().replace("@HUTCH_BINARY@", "/usr/bin/hutch")
    unit.write_text(text.replace("@HUTCH_ETC@", "/etc/hutch"))
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", "--no-pager", str(unit)],
        capture_output=True, text=True, timeout=60, env={"PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr
    return float(re.search(r"exposure level for hutch\.service: ([0-9.]+)", done.stdout)[1])


def test_the_exposure_stays_low(exposure):
    assert exposure <= EXPOSURE_MAX


def test_the_document_has_the_figure(exposure):
    assert f"exposure of {exposure}" in (TREE / "docs/install.md").read_text()


def settings_of(key):
    return [line.split("=", 1)[1] for line in UNIT.read_text().splitlines()
            if line.startswith(key + "=")]


def test_unit_and_container_have_the_same_capabilities():
    unit = {word.removeprefix("CAP_") for value in settings_of("CapabilityBoundingSet")
            for word in value.split()}
    service = yaml.safe_load(COMPOSE.read_text())["services"]["hutch"]
    assert service["cap_drop"] == ["ALL"]
    assert set(service["cap_add"]) == unit


def test_each_directive_that_is_left_out_has_its_reason():
    document = (TREE / "docs/install.md").read_text()
    for name in ("User", "RestrictNamespaces", "ProtectKernelTunables", "ProtectControlGroups",
                 "ProtectHostname", "ProtectKernelLogs", "ProcSubset", "PrivateDevices",
                 "PrivateNetwork", "PrivateUsers", "LockPersonality", "MemoryDenyWriteExecute",
                 "RestrictSUIDSGID", "RootDirectory", "UMask"):
        assert settings_of(name) == []
        assert f"`{name}=`" in document, name
