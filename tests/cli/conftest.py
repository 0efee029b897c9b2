"""What the tests of commands share."""

import pytest
from harness.run_command import RunCommand


@pytest.fixture(params=["daemon", "private"])
def hutch(request):
    """The command, and afterwards nothing of it is left."""
    daemon = request.getfixturevalue("daemon") if request.param == "daemon" else None
    command = RunCommand(daemon.internal.url if daemon else None)
    yield command
    try:
        command.check_clean()
        # Several runs in a row leave the pool empty, which is nothing that they have to answer for.
        if daemon:
            daemon.wait_warm()
    finally:
        command.end()
