"""Makes a root file system safe to share with programs nobody trusts.

Set-id bits, extended attributes (file capabilities among them) and everything that is not a file, a
directory or a symbolic link go; everybody may read what is left, nobody but root may write it.
"""

import os
import stat
import sys

PLAIN = (stat.S_ISREG, stat.S_ISDIR)


def seal(path: str) -> None:
    info = os.lstat(path)
    if stat.S_ISLNK(info.st_mode):
        return
    if not any(kind(info.st_mode) for kind in PLAIN):
        os.unlink(path)
        return
    for name in os.listxattr(path, follow_symlinks=False):
        os.removexattr(path, name, follow_symlinks=False)
    # A directory anyone can search and a file anyone can read: what a sandbox runs as is not root.
    mode = stat.S_IMODE(info.st_mode)
    if stat.S_ISDIR(info.st_mode):
        wanted = 0o1777 if os.path.basename(path) == "tmp" and mode & 0o1000 else 0o755
    else:
        wanted = 0o755 if mode & 0o111 else 0o644
    if wanted != mode:
        os.chmod(path, wanted)
    if (info.st_uid, info.st_gid) != (0, 0):
        os.chown(path, 0, 0)


def main() -> None:
    top = sys.argv[1]
    for folder, folders, files in os.walk(top, topdown=False):
        for name in files + folders:
            seal(os.path.join(folder, name))
    seal(top)
    for name in ("usr/bin/python3.13", "usr/bin/bash", "opt/image/mpl-cache"):
        if not os.path.exists(os.path.join(top, name)):
            sys.exit(f"error: the tree has no /{name}")


main()
