"""The examples of the README and of other pages, as they are printed."""

import re
from collections.abc import Iterator
from pathlib import Path

import attrs

README = Path(__file__).parents[2] / "README.md"

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@attrs.frozen
class Example:
    """A command as it is typed, and what is printed below it."""

    command: str
    output: str


def blocks(language: str, page: Path = README) -> list[str]:
    """The fenced blocks of `language` in a page, in order."""
    return [body for kind, body in _FENCE.findall(page.read_text("utf-8")) if kind == language]


def examples(block: str) -> Iterator[Example]:
    """The commands of one console block."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield Example(command, output)
