"""Where the product is, and how patient the tests are. Everything comes from the environment."""

import os
import pathlib
import secrets

ROOT = pathlib.Path(__file__).resolve().parents[2]

# The binary under test, and the one with failpoints compiled in (-DHUTCH_TESTING=ON).
BINARY = os.environ.get("HUTCH_BIN", str(ROOT / "build" / "release" / "hutch"))
TESTING_BINARY = os.environ.get("HUTCH_TESTING_BIN", str(ROOT / "build" / "testing" / "hutch"))

# A state directory in which the image has been built; each test daemon borrows its images.
IMAGE_STATE = pathlib.Path(
    os.environ.get("HUTCH_TEST_IMAGE_STATE")
    or os.environ.get("HUTCH_STATE_DIR")
    or "/var/lib/hutch"
)

# Whether an ordinary user with subordinate ids serves, and not root.
ROOTLESS = os.environ.get("HUTCH_TEST_ROOTLESS", "0") not in ("", "0")

# Multiplies every upper bound of time: 1 on a quiet machine, more on a crowded one.
SLACK = float(os.environ.get("HUTCH_TEST_SLACK", "1"))

# In the daemon's environment, and never to be seen in a sandbox, an answer or a log.
CANARY = "CNRY-" + secrets.token_hex(16)

# In the command line of every process that a test wants to find on the host, or not to find.
MARK = "SBXMARK"
