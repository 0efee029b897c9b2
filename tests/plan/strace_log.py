"""The system calls of each process in a log of `strace -f`."""

import dataclasses
import re

# Calls that say nothing about a plan, and which the C library may make at any time.
IGNORED = {"clock_gettime"}
_CALL = re.compile(r"(\w+)\((.*)\)\s+= (-?\d+|\?)(.*)$", re.S)
_UNFINISHED = "<unfinished ...>"
_RESUMED = re.compile(r"<\.\.\. \w+ resumed>")


@dataclasses.dataclass(frozen=True)
class Call:
    name: str
    arguments: str
    result: int | None  # None for a call that never came back
    note: str  # what follows the result: an error's name, a decoded value

    def __str__(self):
        return f"{self.name}({self.arguments}) = {self.result}{self.note}"


def _parse(text):
    match = _CALL.match(text)
    if not match:
        return None
    name, arguments, result, note = match.groups()
    return Call(name, arguments.strip(), None if result == "?" else int(result), note.strip())


def read(path):
    """{process: [Call, ...]} in the order of the log, processes in the order of their first call.

    A call that was still under way at the end is left out.
    """
    processes, begun = {}, {}
    for line in path.read_text(errors="replace").splitlines():
        process, _, text = line.partition(" ")
        text = text.strip()
        if text.startswith(("---", "+++")):
            continue
        if text.endswith(_UNFINISHED):
            begun[process] = text[: -len(_UNFINISHED)].rstrip()
            processes.setdefault(process, [])
            continue
        resumed = _RESUMED.match(text)
        if resumed:
            start, rest = begun.pop(process), text[resumed.end() :].lstrip()
            text = start + (" " if start.endswith(",") else "") + rest
        call = _parse(text)
        if call and call.name not in IGNORED:
            processes.setdefault(process, []).append(call)
    return processes
