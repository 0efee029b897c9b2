#!/usr/bin/env python3
"""Style as a test: what STYLE.md asks for and a script can see.

usage: tidy.py [--rules]

Prints one line per finding, `file:line: [rule] what is wrong; what to do`, and ends with code 1
when there is one. --rules prints the table.

What is right although a length rule says otherwise (a table, generated text) carries the comment
`tidy: long, WHY`: within the first 20 lines for a file and its columns, inside or on the line
before for a function, on the line itself for a line.
"""

import dataclasses
import pathlib
import re
import subprocess
import sys
from typing import Callable

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import tidy_source  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXCUSE = re.compile(r"tidy: long, \w")


class File:
    """One file of the tree: its text, and the text taken apart."""

    def __init__(self, path, text):
        self.path, self.text = path, text
        self.name = path.rsplit("/", 1)[-1]
        self.is_cpp = path.endswith((".cc", ".h", ".h.in"))
        self.is_python = path.endswith(".py") or text.startswith("#!/usr/bin/env python3")
        self.is_shell = path.endswith(".sh") or text.startswith(("#!/usr/bin/env bash", "#!/bin/"))
        self.is_cmake = path.endswith(".cmake") or self.name == "CMakeLists.txt"
        self.is_markdown = path.endswith(".md")
        self.is_code = self.is_cpp or self.is_python or self.is_shell or self.is_cmake
        self.is_test = path.endswith(("_test.cc", "_test.py")) or path.startswith("tests/")
        self.is_excused = bool(EXCUSE.search("\n".join(text.split("\n", 20)[:20])))
        if self.is_cpp:
            self.code, self.comments = tidy_source.split_cpp(text)
        elif self.is_python:
            self.code, self.comments = text, tidy_source.python_comments(text)
        elif self.is_code or path.endswith((".yaml", ".yml", ".toml")):
            self.code, self.comments = text, tidy_source.hash_comments(text)
        else:
            self.code, self.comments = text, ""

    @property
    def room(self):
        """`base` for src/base/fd.cc, `main` for src/main.cc, nothing outside src."""
        parts = self.path.split("/")
        if parts[0] != "src":
            return None
        return parts[1] if len(parts) > 2 else "main"


@dataclasses.dataclass(frozen=True)
class Finding:
    path: str
    line: int
    rule: str
    text: str

    def __str__(self):
        return f"{self.path}:{self.line}: [{self.rule}] {self.text}"


@dataclasses.dataclass(frozen=True)
class Rule:
    """check(file, tree) yields (line, what is wrong and what to do)."""

    name: str
    about: str
    check: Callable


def matches(pattern, text, flags=0):
    """(line, match) for every match, lines counted from 1."""
    for match in re.finditer(pattern, text, flags | re.MULTILINE):
        yield text.count("\n", 0, match.start()) + 1, match


# --- rooms ---------------------------------------------------------------------------------------

# What each room may include besides itself.
RIGHT_OF = {
    "base": "",
    "model": "base",
    "config": "model base",
    "isolation": "base",
    "plan": "isolation base",
    "guest": "plan isolation base",
    "warden": "plan isolation base",
    "engine": "warden plan isolation model base",
    "service": "engine warden plan isolation model base",
    "http": "base",
    "api": "http service engine warden plan isolation model base",
    "image": "isolation base",
    "cli": "config image service engine warden plan isolation model base",
}


def arrows(file, _tree):
    room = file.room
    if room in (None, "main"):
        return
    if room not in RIGHT_OF:
        yield 1, f"src/{room} is no room; put the file in one, or add the room to tidy.py's table"
        return
    for line, match in matches(r'^#include "(\w+)/', file.code):
        target = match.group(1)
        if target == "api" and room != "api":
            yield line, "only main.cc may know a door; pass what is needed in from there"
        elif target in RIGHT_OF and target != room and target not in RIGHT_OF[room].split():
            yield line, (f"{room} may not include {target}; move the shared type to the right, "
                         "or let the caller pass it in")


VENDORS = ("crusoe|hanzo|agentkit|veadk|e2b|daytona|volcengine|vefaas|bytedance|opensandbox"
           "|microsandbox|sandboxfusion")


def vendor_words(file, _tree):
    free = ("src/api/", "spec/", "tests/", "sdk/", "docs/", "tools/tidy")
    if file.path.startswith(free) or file.is_markdown or file.path == "src/main.cc":
        return
    for line, match in matches(rf"\b(?:{VENDORS})\b", file.text, re.IGNORECASE):
        yield line, (f"'{match.group()}' is a vendor's word; it may stand in src/api, spec, tests, "
                     "sdk and docs only, so translate it at the door")


def pure_plan(file, _tree):
    if file.path != "src/plan/plan.cc":
        return
    headers = r'^#include (?:<(?:unistd\.h|fcntl\.h|fstream|filesystem|dirent\.h)>|"base/sys\.h")'
    calls = (r"(?<![\w.>:])(?:::)?(?:open|openat|read|write|stat|access|mount|umount2?|syscall"
             r"|getuid|geteuid|getpid|readlink|mkdir|unlink|prctl|ioctl)\(")
    for pattern in (headers, calls):
        for line, match in matches(pattern, file.code):
            yield line, (f"'{match.group()}' asks the kernel; plan.cc only decides, so take the "
                         "fact from the host's facts")


# --- owners of calls -----------------------------------------------------------------------------

# Before a call, as opposed to a declaration or a member function of that name.
BEFORE_CALL = (r"(?:^[ \t]*|[=(,!;{}&|?+<-]\s*|\s:\s+|\breturn\s+|\bco_await\s+|\bvoid\)\s*)"
               r"(?<![\w.>])(?:::)?")
WITH_ARGUMENT = r"(?=\(\s*[^)\s])"


@dataclasses.dataclass(frozen=True)
class Owner:
    calls: str  # regular expression of names
    files: str  # regular expression of the paths that may call them
    remedy: str
    in_tests: bool = False  # whether tests are held to it as well


OWNERS = (
    Owner("close" + WITH_ARGUMENT, r"base/fd\.cc$|_unsafe\.cc$",
          "hold the descriptor in an Fd (base/fd.h)"),
    Owner(f"(?:kill|pidfd_send_signal|tgkill){WITH_ARGUMENT}",
          r"base/pidfd\.cc$|src/isolation/|image/spawn\.cc$|_unsafe\.cc$",
          "a process is ended by its owner: base/pidfd.cc, isolation/, or image/spawn.cc"),
    Owner("umount2?" + WITH_ARGUMENT, r"(?:isolation|image)/\w*mount\w*\.cc$|_unsafe\.cc$",
          "a mount is undone by its owner, the mount file of isolation/ or image/"),
    Owner("sleep|usleep|nanosleep|clock_nanosleep|std::this_thread::sleep_(?:for|until)",
          r"_unsafe\.cc$", "wait for the condition itself: a descriptor, a timer, an exit", True),
    Owner("fork|vfork|clone|clone3|daemon",
          r"isolation/launch\w*\.cc$|(?:isolation|guest)/\w*_unsafe\.cc$",
          "new processes come from isolation/launch.cc"),
    Owner("posix_spawnp?|system|popen", r"image/spawn\.cc$",
          "programs of the host are started by image/spawn.cc alone"),
    Owner(r"time(?=\((?:nullptr|NULL|0|&))|gettimeofday|clock_gettime|std::chrono::\w+::now",
          r"base/clock\.cc$|_unsafe\.cc$", "take a Clock (base/clock.h), so that tests can turn it"),
    Owner("s?rand|getrandom|arc4random", r"base/random\.cc$|_unsafe\.cc$",
          "take what base/random.h offers, so that tests can seed it"),
)


def owned_calls(file, _tree):
    if not file.is_cpp:
        return
    for owner in OWNERS:
        exempt = not owner.in_tests and (file.room is None or file.is_test)
        if exempt or re.search(owner.files, file.path):
            continue
        for _, match in matches(rf"{BEFORE_CALL}({owner.calls})\(", file.code):
            line = file.code.count("\n", 0, match.end()) + 1
            yield line, f"{match.group(1)}() is not for here; {owner.remedy}"


def errno_readers(file, _tree):
    if not file.is_cpp or file.room is None or file.is_test:
        return
    if file.path == "src/base/sys.cc" or file.path.endswith("_unsafe.cc"):
        return
    for line, _ in matches(r"\berrno\b", file.code):
        yield line, "errno is read in base/sys.cc and *_unsafe.cc only; call through base/sys.h"


def unsafe_files(file, _tree):
    if not file.path.endswith("_unsafe.cc"):
        return
    pattern = (r"\bstd::(?:string|vector|map|function|mutex|lock_guard|unique_ptr|shared_ptr)\b"
               r"|\b(?:malloc|calloc|realloc|free|printf|fprintf)\(|\bnew \w|\bthrow\b")
    for line, match in matches(pattern, file.code):
        yield line, (f"'{match.group()}' may allocate, lock or log, and this file runs between "
                     "clone and exec; use fixed buffers")


def macros(file, _tree):
    if not file.is_cpp or file.room is None:
        return
    for line, match in matches(r"^\s*#\s*define\s+(\w+)\(", file.code):
        if match.group(1) not in ("TRY", "CHECK"):
            yield line, f"the tree has two macros, TRY and CHECK; make {match.group(1)} a function"


# --- shape ---------------------------------------------------------------------------------------

FILE_LINES, FUNCTION_LINES, COLUMNS = 600, 70, 100


def file_length(file, _tree):
    lines = file.text.split("\n")
    if not file.is_code or len(lines) <= FILE_LINES + 1 or file.is_excused:
        return
    yield FILE_LINES + 1, (f"the file has {len(lines) - 1} lines, and {FILE_LINES} fit; split it "
                           "by nouns, or say why not: `tidy: long, WHY`")


def function_length(file, _tree):
    if file.is_cpp:
        functions = tidy_source.cpp_functions(file.code)
    elif file.is_python:
        functions = tidy_source.python_functions(file.text)
    elif file.is_shell:
        functions = tidy_source.shell_functions(file.text)
    else:
        return
    lines = file.text.split("\n")
    for first, last in functions:
        size = last - first + 1
        if size > FUNCTION_LINES and not EXCUSE.search("\n".join(lines[max(0, first - 2):last])):
            yield first, (f"the function has {size} lines, and {FUNCTION_LINES} fit on a screen; "
                          "keep the ifs here and move pure parts out")


def columns(file, _tree):
    if not file.is_code or file.is_excused:
        return
    for number, line in enumerate(file.text.split("\n"), 1):
        if len(line) > COLUMNS and not EXCUSE.search(line) and "://" not in line:
            yield number, f"the line has {len(line)} columns, and {COLUMNS} fit; break it"


# --- words ---------------------------------------------------------------------------------------

def unfinished(file, _tree):
    if file.path.startswith("tools/tidy"):
        return
    for line, match in matches(r"\b(?:TODO|FIXME|XXX|HACK)\b", file.text):
        yield line, f"{match.group()} marks unfinished work; finish it, and drop the note"


def file_names(file, _tree):
    for part in re.split(r"[/._-]", file.path):
        if part in ("util", "utils", "helper", "helpers", "common", "manager", "misc"):
            yield 1, f"'{part}' names no noun; name the file after what it owns"


HISTORY = (
    r"\b(?:it|this|that|we|they|there|which|code|hutch) used to\b",
    r"\bno longer\b", r"\bpreviously\b", r"\bformerly\b", r"\bin the past\b",
    r"\b(?:was|were|has been|have been) (?:changed|renamed|replaced|refactored)\b",
    r"\bas (?:discussed|requested|agreed)\b",
)
OUTSIDE = (
    r"\.\./shared", r"\bshared/\w+\.md", r"\bissues? #?\d+", r"/tmp/design",
    r"\bcontract (?:row|rule)s?\b", r"\b[SD]\d{2,3}\b",
)
NAMED_FILE = (r"(?<![\w/.-])(?:src|docs|tools|spec|images|bench|cmake)/[\w./-]+"
              r"\.(?:cc|h|py|md|toml|yaml)\b")


def comment_history(file, _tree):
    if file.path.startswith("tools/tidy"):
        return
    for pattern in HISTORY:
        for line, match in matches(pattern, file.comments, re.IGNORECASE):
            yield line, (f"'{match.group()}' tells history; say how it is now, and leave the change "
                         "to the commit message")


def comment_outside(file, tree):
    if file.path.startswith("tools/tidy"):
        return
    text = file.text if file.is_markdown else file.comments
    if file.path not in ("COMPATIBILITY.md", "CHANGELOG.md"):
        for pattern in OUTSIDE[:4] if file.is_markdown or file.is_test else OUTSIDE:
            for line, match in matches(pattern, text):
                yield line, (f"'{match.group()}' points outside the tree, where the reader cannot "
                             "look; say it here")
    for line, match in matches(NAMED_FILE, file.comments):
        if match.group() not in tree:
            yield line, f"{match.group()} does not exist; name the file that does"


REGISTRIES = (
    r"\b(?:deb|security|snapshot|ftp)\.debian\.org\b", r"\bpypi\.org\b", r"\bpythonhosted\.org\b",
    r"\bnpmjs\.(?:org|com)\b", r"\bcrates\.io\b", r"\bproxy\.golang\.org\b",
    r"\brepo1?\.maven\.(?:apache\.)?org\b", r"\bdocker\.io\b",
)


def registries(file, _tree):
    for pattern in REGISTRIES:
        for line, match in matches(pattern, file.text):
            yield line, (f"{match.group()} is one site's registry; use the client as the machine "
                         "has it set up")


# --- documents -----------------------------------------------------------------------------------

def markdown_title(file, _tree):
    if not file.is_markdown:
        return
    prose = re.sub(r"^```.*?^```", lambda block: tidy_source.blank(block.group()), file.text,
                   flags=re.MULTILINE | re.DOTALL)
    titles = [line for line, _ in matches(r"^# ", prose)]
    if titles[:1] != [1]:
        yield 1, "the first line is no title; start with `# What this is about`"
    for line in titles[1:]:
        yield line, "a second title; a document has one, so make this a section (##)"


def documented_settings(file, tree):
    if file.path != "src/config/config_table.cc":
        return
    reference = tree["docs/config.md"].text if "docs/config.md" in tree else ""
    groups = "internal|public|limits|pool|runs|execute|server"
    for line, match in matches(rf'"((?:{groups})\.\w+)"', file.text):
        group, key = match.group(1).split(".")
        if f"{group}.{key}" not in reference and key not in reference:
            yield line, (f"the setting {match.group(1)} is missing in docs/config.md; write it with "
                         "`hutch docs config > docs/config.md`")


def dead_headers(file, tree):
    if file.room is None or not file.path.endswith(".h"):
        return
    name = file.path.removeprefix("src/")
    users = (f'#include "{name}"', f'#include "{file.name}"')
    if not any(user in other.code for other in tree.values() if other is not file and other.is_cpp
               for user in users):
        yield 1, "no source includes this header; delete it or use it"


RULES = (
    Rule("arrows", "includes go right: api -> service -> engine -> ... -> base", arrows),
    Rule("vendor-words", "vendors' words stop at the door", vendor_words),
    Rule("pure-plan", "plan/plan.cc decides and makes no system call", pure_plan),
    Rule("owned-calls", "each kernel thing has one owner file", owned_calls),
    Rule("errno", "errno is read in one place", errno_readers),
    Rule("unsafe-files", "no allocation, lock or log between clone and exec", unsafe_files),
    Rule("macros", "TRY and CHECK are the only macros", macros),
    Rule("file-length", f"at most {FILE_LINES} lines", file_length),
    Rule("function-length", f"at most {FUNCTION_LINES} lines", function_length),
    Rule("columns", f"at most {COLUMNS} columns", columns),
    Rule("unfinished", "no notes about unfinished work", unfinished),
    Rule("file-names", "files are named after nouns", file_names),
    Rule("history", "comments tell how it is, not how it came", comment_history),
    Rule("outside", "comments point at nothing outside the tree", comment_outside),
    Rule("registries", "no registry's host name", registries),
    Rule("markdown-title", "one title a document", markdown_title),
    Rule("settings", "every setting is in docs/config.md", documented_settings),
    Rule("dead-headers", "every header is included somewhere", dead_headers),
)


def examine(texts):
    """Findings for a tree given as {path: text}, in order of path and line."""
    tree = {path: File(path, text) for path, text in texts.items()}
    return sorted(
        (Finding(path, line, rule.name, text)
         for path, file in tree.items() for rule in RULES for line, text in rule.check(file, tree)),
        key=lambda finding: (finding.path, finding.line))


def read_tree(root):
    """The text files that git knows or would add."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root, capture_output=True, check=True).stdout.decode().split("\0")
    texts = {}
    for name in filter(None, names):
        path = root / name
        if path.is_symlink() or not path.is_file():
            continue
        data = path.read_bytes()
        if b"\0" not in data:
            texts[name] = data.decode(errors="replace")
    return texts


def main(arguments):
    if arguments == ["--rules"]:
        for rule in RULES:
            print(f"{rule.name:16} {rule.about}")
        return 0
    if arguments:
        sys.exit(__doc__)
    texts = read_tree(ROOT)
    findings = examine(texts)
    for finding in findings:
        print(finding)
    print(f"{len(texts)} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
