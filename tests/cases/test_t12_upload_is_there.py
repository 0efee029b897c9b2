"""An upload that is answered with success is there, byte for byte, at every size."""

import hashlib
import os

import pytest
from harness.client import upload

HASH = (
    "import hashlib, os\nd = open('f', 'rb').read()\nprint(hashlib.sha256(d).hexdigest(), len(d))"
)


@pytest.mark.parametrize("size", [0, 1, 18_432, 18_433, 65_536, 1_048_577, 20_000_000])
def test_the_hash_inside_is_the_hash_outside(daemon, size):
    data = os.urandom(size)
    shown = daemon.execute(HASH, files=[upload("f", data)])
    assert shown["stdout"] == f"{hashlib.sha256(data).hexdigest()} {size}\n"


def test_a_size_beyond_the_default_body_with_a_higher_setting(own_daemon):
    here = own_daemon(sets={"execute.body_bytes_max": 96 << 20})
    data = os.urandom(67_108_864)
    shown = here.execute(HASH, files=[upload("f", data)])
    assert shown["stdout"] == f"{hashlib.sha256(data).hexdigest()} {len(data)}\n"


def test_beyond_the_limit_is_413_and_names_it(daemon):
    answer = daemon.execute(HASH, files=[upload("f", os.urandom(30_000_000))])
    assert answer.status == 413 and answer.error == "request body is larger than 33554432 bytes"


def test_binary_head_and_missing_directories(daemon):
    head = bytes.fromhex("89504e47")
    code = "d = open('a/b/c.png', 'rb').read(); print(d.hex()); open('copy.png', 'wb').write(d)"
    answer = daemon.execute(code, files=[upload("a/b/c.png", head)])
    assert answer["stdout"] == "89504e47\n" and answer.file("copy.png") == head


@pytest.mark.parametrize("size", [0, 1, 18_433, 65_536, 1_048_577, 4_194_304])
def test_there_and_back(daemon, size):
    data = os.urandom(size)
    code = "import shutil; shutil.copy('f', 'g')"
    assert daemon.execute(code, files=[upload("f", data)]).file("g") == data
