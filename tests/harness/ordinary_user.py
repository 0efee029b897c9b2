"""An ordinary user of this host, for as long as the tests run: with subordinate ids, nothing else.

The user stands in files that are bound over those of /etc in a mount namespace of each command's
own, so that the host's never change.
"""

import atexit
import functools
import pathlib
import shutil
import subprocess
import tempfile

from harness import settings

NAME = "sbxann"
UID = 18_770  # of no package, and below the ids that systemd hands out
SUBORDINATE_FIRST = 1_880_000_000
SUBORDINATE_COUNT = 65_536
_SUBORDINATE = f"{NAME}:{SUBORDINATE_FIRST}:{SUBORDINATE_COUNT}\n"

_ENTER = """
for name in passwd group subuid subgid; do mount --bind "$1/$name" "/etc/$name" || exit 125; done
home=$2; shift 2
exec setpriv --reuid {uid} --regid {uid} --clear-groups \\
  env HOME="$home" USER={name} LOGNAME={name} XDG_RUNTIME_DIR= "$@"
""".format(uid=UID, name=NAME)


@functools.cache
def place():
    """A directory with the files of /etc, the user's home and a copy of the binaries."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="hutch-ordinary-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    directory.chmod(0o755)
    passwd = pathlib.Path("/etc/passwd").read_text()
    group = pathlib.Path("/etc/group").read_text()
    (directory / "passwd").write_text(f"{passwd}{NAME}:x:{UID}:{UID}::{directory}/home:/bin/sh\n")
    (directory / "group").write_text(f"{group}{NAME}:x:{UID}:\n")
    (directory / "subuid").write_text(_SUBORDINATE)
    (directory / "subgid").write_text(_SUBORDINATE)
    (directory / "home").mkdir()
    give(directory / "home")
    return directory


def give(path):
    """Makes the user the owner of `path`."""
    shutil.chown(path, UID, UID)


def prefix(etc=None):
    """The command that runs another one as the user; `etc` is a directory with other files."""
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _ENTER, "sh"]
    return [*command, etc or place(), place() / "home"]


@functools.cache
def copy_of(binary):
    """The binary at a place that the user can reach, wherever the tree lies."""
    target = place() / pathlib.Path(binary).parent.name / pathlib.Path(binary).name
    target.parent.mkdir(exist_ok=True)
    shutil.copyfile(binary, target)
    target.chmod(0o755)
    return str(target)


@functools.cache
def image_state():
    """A state directory of the user with the image in it, unpacked once for all tests."""
    state = place() / "images-state"
    state.mkdir()
    give(state)
    command = [copy_of(settings.BINARY), "image", "unpack", "python"]
    command += ["--from", settings.IMAGE_STATE, "--state-dir", state]
    subprocess.run([*prefix(), *command], check=True, timeout=300, capture_output=True)
    return state
