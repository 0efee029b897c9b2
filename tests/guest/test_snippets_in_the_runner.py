"""The snippets of tests/snippets, in the image's own interpreter through the warm runner."""

import sys

import pytest
from stage import ROOT, Stage

sys.path.insert(0, str(ROOT / "tests" / "snippets"))

import check  # noqa: E402

IMPORTS = ["numpy", "pandas", "matplotlib", "matplotlib.pyplot"]


@pytest.mark.parametrize("name", check.names())
def test_snippet(interpreter, name):
    if not interpreter.root:
        pytest.skip("needs the image's libraries: HUTCH_TEST_ROOTFS names none")
    source, files, _, expect = check.load(name)
    environment = {"MPLBACKEND": "module://hutch_mpl", "PYTHONDONTWRITEBYTECODE": "1"}
    stage = Stage(interpreter, files=files, environment=environment)
    ended = stage.warm(source.encode(), imports=IMPORTS)
    changed = {p: (None, c) for p, c in ended.files.items() if files.get(p) != c}
    said = check.complaints(
        expect,
        stdout=ended.stdout.decode("utf-8", "replace"),
        stderr=ended.stderr.decode("utf-8", "replace"),
        exit_code=ended.status,
        files=changed,
    )
    assert not said
