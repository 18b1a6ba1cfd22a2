"""Plain-text tables."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from attrs import frozen

_GAP = "  "


class Align(Enum):
    """Where a column's cells stand."""

    LEFT = "left"
    RIGHT = "right"


@frozen
class Column:
    """A column: its title and where its cells stand."""

    title: str
    align: Align = Align.LEFT


def right(title: str) -> Column:
    """A column of numbers."""
    return Column(title, Align.RIGHT)


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    """The table as text: a line of titles, a rule, one line per row."""
    titles = [column.title for column in columns]
    widths = [max(map(len, cells)) for cells in zip(titles, *rows, strict=True)]
    lines = [titles, ["-" * width for width in widths], *rows]
    return "\n".join(_line(columns, widths, cells) for cells in lines)


def pairs(rows: Sequence[tuple[str, str]]) -> str:
    """Names and values, one pair a line."""
    width = max((len(name) for name, _ in rows), default=0)
    return "\n".join(f"{name:<{width}}{_GAP}{value}".rstrip() for name, value in rows)


def _line(columns: Sequence[Column], widths: Sequence[int], cells: Sequence[str]) -> str:
    padded = [
        cell.rjust(width) if column.align is Align.RIGHT else cell.ljust(width)
        for column, width, cell in zip(columns, widths, cells, strict=True)
    ]
    return _GAP.join(padded).rstrip()
