#!/usr/bin/env python3
"""Runs clang-tidy over the product's sources that a build directory compiles, two at a time.

A source whose text, included headers of ours, compile command and .clang-tidy are as they were
when it last passed is not looked at again. Like ccache's, the memory of that outlives the clone:
one empty file per state in ~/.cache/hutch/tidy, forgotten after 30 days without use. Tests are left
out: their macros cost most of the time and find the least.

usage: clang_tidy.py BUILD_DIR [SOURCE...]
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache",
                     "hutch", "tidy")
CACHE_DAYS = 30
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
PROGRAMS = ("clang-tidy-16", "clang-tidy")


def own_headers(source):
    """The source and every header of the tree that it reaches."""
    seen, todo = set(), [source]
    while todo:
        path = todo.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        for name in INCLUDE.findall(path.read_text()):
            todo += [ROOT / "src" / name, path.parent / name]
    return sorted(seen)


def clang_command(entry):
    """The compile command without what only g++ understands."""
    words = shlex.split(entry["command"])
    kept, skip = [], False
    for word, following in zip(words, words[1:] + [""]):
        if skip:
            skip = False
        elif word == "-include" and following.endswith("cmake_pch.hxx"):
            skip = True
        elif word not in ("-Winvalid-pch", "-fpch-preprocess"):
            kept.append(word)
    return shlex.join(kept)


def state_of(entry):
    digest = hashlib.sha256((ROOT / ".clang-tidy").read_bytes())
    digest.update(entry["command"].replace(str(ROOT), "").encode())
    for path in own_headers(pathlib.Path(entry["file"])):
        digest.update(path.read_bytes())
    return CACHE / digest.hexdigest()


def examine(program, database, entry, state):
    result = subprocess.run(
        [program, "-p", database, "--quiet", "--extra-arg=-Wno-unknown-warning-option",
         entry["file"]],
        capture_output=True, text=True, check=False)
    if result.returncode == 0:
        state.touch()
    return result


def forget_old_states():
    CACHE.mkdir(parents=True, exist_ok=True)
    for state in CACHE.iterdir():
        if time.time() - state.stat().st_mtime > CACHE_DAYS * 86400:
            state.unlink(missing_ok=True)


def wanted_entries(build_dir, only):
    entries = {}
    for entry in json.loads((build_dir / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if path.suffix != ".cc":
            continue
        if not path.is_relative_to(ROOT / "src") or path.name.endswith("_test.cc"):
            continue
        if only and path not in only:
            continue
        entries[entry["file"]] = {**entry, "command": clang_command(entry)}
    return sorted(entries.values(), key=lambda entry: entry["file"])


def main(arguments):
    if not arguments:
        sys.exit(__doc__)
    program = next((name for name in PROGRAMS if shutil.which(name)), None)
    if program is None:
        sys.exit("clang-tidy is not installed; ./dev lint installs it")
    forget_old_states()
    only = {pathlib.Path(name).resolve() for name in arguments[1:]}
    entries = wanted_entries(pathlib.Path(arguments[0]).resolve(), only)
    states = {entry["file"]: state_of(entry) for entry in entries}
    stale = [entry for entry in entries if not states[entry["file"]].exists()]
    for state in states.values():
        if state.exists():
            state.touch()
    failures = 0
    with tempfile.TemporaryDirectory() as database, \
            concurrent.futures.ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        pathlib.Path(database, "compile_commands.json").write_text(json.dumps(entries))
        runs = {pool.submit(examine, program, database, entry, states[entry["file"]]): entry
                for entry in stale}
        for done, run in enumerate(concurrent.futures.as_completed(runs), 1):
            name = os.path.relpath(runs[run]["file"], ROOT)
            print(f"[{done}/{len(stale)}] {name}", flush=True)
            if run.result().returncode != 0:
                failures += 1
                print(run.result().stdout or run.result().stderr, flush=True)
    print(f"{len(entries)} sources, {len(stale)} examined, {failures} with findings")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
