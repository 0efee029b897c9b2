#!/usr/bin/env python3
"""Each rule of tidy.py finds what it is for, on the line where it stands, and nothing else."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import tidy  # noqa: E402
import tidy_source  # noqa: E402

USED = {"src/base/fd.h": "// Owns a descriptor.\n", "src/base/fd_test.cc": '#include "base/fd.h"\n'}
LONG_BODY = "void f() {\n" + "  g();\n" * 75 + "}\n"


def host(*parts):
    return ".".join(parts)


# rule: ((path, text, lines with a finding), ...), and texts that the rule leaves alone
BAD = {
    "arrows": (
        ("src/plan/a.cc", '#include "base/fd.h"\n#include "engine/engine.h"\n', [2]),
        ("src/engine/a.cc", '#include "service/pool.h"\n', [1]),
        ("src/service/a.cc", '#include "http/router.h"\n', [1]),
        ("src/cli/a.cc", '#include "api/crusoe/routes.h"\n', [1]),
        ("src/odds/a.cc", "", [1]),
    ),
    "vendor-words": (
        ("src/service/a.cc", "// as Crusoe does\n", [1]),
        ("images/python/build", "x=1\nexport E2B=1\n", [2]),
    ),
    "pure-plan": (
        ("src/plan/plan.cc", "#include <unistd.h>\nint f() { return ::open(name, 0); }\n", [1, 2]),
    ),
    "owned-calls": (
        ("src/warden/a.cc", "void f() {\n  close(fd);\n  if (::kill(pid, 9) != 0) g();\n", [2, 3]),
        ("src/warden/a.cc", "auto r = umount2(path, MNT_DETACH);\n", [1]),
        ("src/service/a_test.cc", "std::this_thread::sleep_for(10ms);\n", [1]),
        ("src/warden/a.cc", "return fork();\n", [1]),
        ("src/cli/a.cc", "(void)system(text);\n", [1]),
        ("src/engine/a.cc", "auto at = std::chrono::steady_clock::now();\n", [1]),
        ("src/engine/a.cc", "int n = rand();\n", [1]),
    ),
    "errno": (("src/engine/a.cc", "// errno\nif (errno == EAGAIN) return;\n", [2]),),
    "unsafe-files": (("src/isolation/a_unsafe.cc", "void f() {\n  std::string s;\n}\n", [2]),),
    "macros": (("src/base/a.h", "#define LOG(x) log(x)\n", [1]),),
    "file-length": (("src/base/a.cc", "int x;\n" * 601, [601]),),
    "function-length": (
        ("src/base/a.cc", "namespace hutch {\n" + LONG_BODY + "}\n", [2]),
        ("src/base/a.cc", "class A {\n public:\n  " + LONG_BODY + "};\n", [3]),
        ("tools/a.py", "def f():\n" + "    g()\n" * 75, [1]),
        ("a.sh", "f() {\n" + "  g\n" * 75 + "}\n", [1]),
    ),
    "columns": (("src/base/a.cc", "int a;\n// " + "x" * 98 + "\n", [2]),),
    "unfinished": (("src/base/a.cc", "int a;\n// TODO: more\n", [2]),),
    "file-names": (("src/base/string_utils.cc", "", [1]), ("src/common/a.cc", "", [1])),
    "history": (
        ("src/base/a.cc", "// It used to be slow.\n", [1]),
        ("tools/a.py", '"""One.\n\nThis was replaced.\n"""\n', [3]),
        ("a.sh", "x=1 # previously 2\n", [1]),
    ),
    "outside": (
        ("src/base/a.cc", "// see ../shared/security.md\n", [1, 1]),
        ("src/base/a.cc", "// asked for in issue 12\n", [1]),
        ("src/base/a.cc", "// row S45\n", [1]),
        ("src/base/a.cc", "// as src/base/nothing.cc does\n", [1]),
        ("docs/a.md", "# A\n\nSee issue 4.\n", [3]),
    ),
    "registries": (("images/python/build", "mirror=http://" + host("deb", "debian", "org"), [1]),
                   ("docs/a.md", "# A\n" + host("pypi", "org") + "\n", [2])),
    "markdown-title": (("docs/a.md", "# A\n\n# B\n", [3]), ("docs/a.md", "A\n", [1])),
    "settings": (("src/config/config_table.cc", 'f("pool.target");\n', [1]),),
    "dead-headers": (("src/base/a.h", "int f();\n", [1]),),
}
GOOD = {
    "arrows": (("src/main.cc", '#include "api/crusoe/routes.h"\n'),
               ("src/api/crusoe/a.cc", '#include "http/router.h"\n#include "api/crusoe/wire.h"\n'),
               ("src/plan/a.cc", '// #include "engine/engine.h"\n#include <vector>\n')),
    "vendor-words": (("src/api/crusoe/a.cc", "// crusoe\n"), ("COMPATIBILITY.md", "# Crusoe\n")),
    "pure-plan": (("src/plan/plan.cc", "plan.open(1); return kOpen; // open(2)\n"),
                  ("src/plan/host.cc", "#include <unistd.h>\n")),
    "owned-calls": (
        ("src/base/fd.cc", "  close(fd_);\n"),
        ("src/http/a.cc", "  socket.close(ignored);\n  peer->kill(1);\n  void close(int fd);\n"),
        ("src/http/a.cc", "void Session::close(Reason reason) {\n"),
        ("src/warden/a.cc", "// kill(pid) comes first\nauto s = \"close(fd)\";\n  close();\n"),
        ("tests/kernel/a.cc", "  kill(pid, SIGTERM);\n"),
        ("src/engine/a.cc", "  auto now = clock.now();\n  set_time(0);\n"),
    ),
    "errno": (("src/base/sys.cc", "return errno;\n"), ("src/engine/a.cc", "error.errno_value;\n")),
    "unsafe-files": (("src/isolation/a_unsafe.cc", "// std::string is out\nchar b[64];\n"),),
    "macros": (("src/base/a.h", "#define TRY(x) x\n#define kOne\n"),),
    "file-length": (("src/base/a.cc", "int x;\n" * 600),
                    ("src/base/a.cc", "// tidy: long, one row a system call\n" + "int x;\n" * 700)),
    "function-length": (
        ("src/base/a.cc", "void f() {\n" + "  g();\n" * 68 + "}\n"),
        ("src/base/a.cc", "// tidy: long, a table\n" + LONG_BODY),
        ("src/base/a.cc", "constexpr Row kRows[] = {\n" + '  {"("},\n' * 90 + "};\n"),
        ("src/base/a.cc", "namespace hutch {\n" + "int f(int a) { return a; }\n" * 90 + "}\n"),
        ("src/base/a.cc", 'auto s = R"({)";\n' + "int f(int a) { return '{'; }\n" * 90),
    ),
    "columns": (("src/base/a.cc", "x" * 100 + "\n"), ("docs/a.md", "# A\n" + "x" * 200)),
    "unfinished": (("src/base/a.cc", 'mkdtemp("aXXXXXX");\n'),),
    "file-names": (("src/base/fd.cc", ""), ("docs/commonly.md", "# A\n")),
    "history": (("src/base/a.cc", "// The key is used to sign.\nauto s = \"no longer\";\n"),
                ("CHANGELOG.md", "# Changes\n\nIt used to fail.\n")),
    "outside": (("src/base/a.cc", "// see src/base/a.cc and C++20\n"),
                ("COMPATIBILITY.md", "# A\n\nissue 3\n")),
    "registries": (("docs/a.md", "# A\ndebian.org\n"),),
    "markdown-title": (("docs/a.md", "# A\n\n```\n# comment\n```\n\n## B\n"),),
    "settings": (("docs/config.md", "# Settings\n\n`pool.target`\n"),
                 ("src/config/config_table.cc", "int x;\n")),
    "dead-headers": (("src/base/fd.h", "// Owns a descriptor.\n"),),
}


def lines_found(rule, path, text):
    found = tidy.examine({**USED, path: text})
    return [finding.line for finding in found if (finding.rule, finding.path) == (rule, path)]


class Rules(unittest.TestCase):
    def test_every_rule_has_cases(self):
        names = {rule.name for rule in tidy.RULES}
        self.assertEqual(names, set(BAD))
        self.assertEqual(names, set(GOOD))

    def test_findings_read_as_place_rule_remedy(self):
        (found,) = tidy.examine({"src/base/a.cc": "// TODO\n"})
        place, rule, remedy = str(found).split(maxsplit=2)
        self.assertEqual((place, rule), ("src/base/a.cc:1:", "[unfinished]"))
        self.assertIn("; finish it", remedy)

    def test_a_missing_document_is_told_from_a_complete_one(self):
        table = 'f("pool.target");\n'
        tree = {"src/config/config_table.cc": table, "docs/config.md": "# S\n\n`pool.target`\n"}
        self.assertEqual(tidy.examine(tree), [])


def case(rule, path, text, expected):
    def run(self):
        self.assertEqual(lines_found(rule, path, text), expected, f"{path}:\n{text[:300]}")
    return run


for rule_name, cases in BAD.items():
    for index, (bad_path, bad_text, bad_lines) in enumerate(cases):
        setattr(Rules, f"test_{rule_name}_finds_{index}",
                case(rule_name, bad_path, bad_text, bad_lines))
for rule_name, cases in GOOD.items():
    for index, (good_path, good_text) in enumerate(cases):
        setattr(Rules, f"test_{rule_name}_leaves_alone_{index}",
                case(rule_name, good_path, good_text, []))


class Source(unittest.TestCase):
    def test_parts_keep_their_places(self):
        text = 'int a = \'"\'; // "one"\n/* two\nthree */ auto s = "// no";\n'
        code, comments = tidy_source.split_cpp(text)
        self.assertEqual((len(code), len(comments)), (len(text), len(text)))
        self.assertEqual(code.split(), ["int", "a", "=", '"', '";', "auto", "s", "=", '"', '";'])
        self.assertEqual(comments.split(), ["//", '"one"', "/*", "two", "three", "*/"])

    def test_digit_separators_are_no_characters(self):
        code, _ = tidy_source.split_cpp("int a = 1'000; int b = 2'000;\n")
        self.assertEqual(code, "int a = 1'000; int b = 2'000;\n")


if __name__ == "__main__":
    unittest.main()
