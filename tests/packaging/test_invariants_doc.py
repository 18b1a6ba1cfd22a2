"""`docs/invariants.md` names a test for every law, every test that it names exists, and no test of a law is missing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from tests.packaging.project import ROOT

PAGE = ROOT.joinpath("docs", "invariants.md").read_text(encoding="utf-8")
LAW_COUNT = 12
_NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def sections() -> dict[int, str]:
    """The text of each law, by its number."""
    parts = re.split(r"^## (\d+)\. .+$", PAGE, flags=re.MULTILINE)
    return {int(number): text for number, text in zip(parts[1::2], parts[2::2], strict=True)}


def named_in(text: str) -> list[tuple[str, str]]:
    return _NAMED.findall(text)


@cache
def functions_of(path: str) -> frozenset[str]:
    """Functions of a test file that pytest would collect. The file is read, not run."""
    tree = ast.parse(ROOT.joinpath(path).read_text(encoding="utf-8"), filename=path)
    return frozenset(
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    )


def law_tests() -> Iterator[tuple[str, str]]:
    for file in sorted(ROOT.joinpath("tests", "property").glob("test_laws_*.py")):
        path = file.relative_to(ROOT).as_posix()
        yield from ((path, test) for test in functions_of(path))


def test_every_law_is_there_in_order() -> None:
    assert list(sections()) == list(range(1, LAW_COUNT + 1))


@pytest.mark.parametrize("number", range(1, LAW_COUNT + 1))
def test_every_law_names_a_test_that_holds_it(number: int) -> None:
    assert named_in(sections()[number])


@pytest.mark.parametrize(("path", "test"), named_in(PAGE), ids=lambda part: part.rpartition("/")[2])
def test_a_named_test_exists(path: str, test: str) -> None:
    assert ROOT.joinpath(path).is_file(), path
    assert test in functions_of(path)


def test_no_test_is_named_twice() -> None:
    named = named_in(PAGE)
    assert sorted(set(named)) == sorted(named)


def test_no_test_of_a_law_is_missing() -> None:
    tests = set(law_tests())
    assert len(tests) > 10 * 3
    assert sorted(tests - set(named_in(PAGE))) == []


def test_no_name_is_written_in_another_form() -> None:
    """Guards the pattern: a name that it does not see would not be checked."""
    assert PAGE.count("::test_") == len(named_in(PAGE))
