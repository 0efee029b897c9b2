import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import stage  # noqa: E402


@pytest.fixture(params=stage.interpreters(), ids=lambda i: i.root or i.path, scope="session")
def interpreter(request):
    return request.param
