"""Every test that a document names exists."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = ["SPECIFICATION.md", "COMPATIBILITY.md", "SECURITY.md"]


def known_tests():
    names = set()
    for source in [*ROOT.glob("src/**/*_test.cc"), *ROOT.glob("tests/**/*.cc")]:
        text = source.read_text()
        for suite, test in re.findall(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)", text, re.M):
            names.add(f"{suite}.{test}")
            names.add(f"{suite}.*")
    for source in ROOT.glob("tests/**/test_*.py"):
        names.add(source.name)
        names.update(re.findall(r"^def (test_\w+)", source.read_text(), re.M))
    names.update(path.name for path in ROOT.glob("tests/api/crusoe/*.http"))
    for path in ROOT.glob("tests/attacks/A[0-9]*.py"):
        names.add(path.name.split("_")[0])
        names.add(path.name.split("_")[0][:3])
    for path in ROOT.glob("tests/cases/test_t*.py"):
        names.add(path.name.split("_")[1].upper())
    return names


def named_tests(text):
    """The last cell of each table row, where it names tests."""
    for line in text.splitlines():
        if not line.startswith("|") or line.startswith("|---"):
            continue
        cell = line.strip().strip("|").split("|")[-1]
        yield from re.findall(r"`(\w+\.(?:\w+|\*))`", cell)
        yield from re.findall(r"\b(test_\w+(?:\.py)?)\b", cell)
        yield from re.findall(r"\b([\w-]+\.http)\b", cell)
        yield from re.findall(r"(?<![\w-])([AT][0-9]{2}[a-e]?)\b(?!-)", cell)
        for first, last in re.findall(r"\b([AT][0-9]{2})-([AT][0-9]{2})\b", cell):
            yield from (f"{first[0]}{n:02}" for n in range(int(first[1:]), int(last[1:]) + 1))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_named_test_exists(document):
    known = known_tests()
    named = list(named_tests((ROOT / document).read_text()))
    assert len(named) > 10
    missing = sorted({name for name in named if name not in known})
    assert missing == []


def test_every_promise_names_a_test():
    for document in DOCUMENTS[:1]:
        for line in (ROOT / document).read_text().splitlines():
            if re.match(r"\| P\d+ ", line):
                assert list(named_tests(line)), line


def test_every_promise_has_a_number_of_its_own():
    numbers = re.findall(r"^\| (P\d+) ", (ROOT / DOCUMENTS[0]).read_text(), re.MULTILINE)
    assert len(numbers) == len(set(numbers)) > 30
