"""Attacks plan/filter_policy.cc: the image is one file system for all sandboxes, so watching a file
of it, or emptying the host's page cache of it, reaches every other sandbox."""

import wave

path = os.path.realpath(wave.__file__)
for number in (294, 253):
    watcher, why = sc(number, 0)
    if watcher >= 0:
        bad("an inotify descriptor")
        if sc(254, watcher, os.path.dirname(path).encode(), 0xFFF)[0] >= 0:
            bad("watches a directory of the image")
if sc(300, 0, 0)[0] >= 0:
    bad("a fanotify descriptor")
fd = os.open(path, os.O_RDONLY)
for name, request in (("F_SETLEASE", 1024), ("F_NOTIFY", 1026)):
    if sc(72, fd, request, 1)[1] not in DENIED:
        bad(name, "on a file of the image")
verdict()
