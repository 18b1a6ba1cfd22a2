"""Lists of the catalogue, which go on without an entry whose file is broken: it is told on stderr."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TextIO, TypeVar

from linkbound.cli.failures import report
from linkbound.domain.paging import UnreadableEntry, UnreadableEntryWarning

EntryT = TypeVar("EntryT")


def listed(entries: Iterator[EntryT]) -> tuple[tuple[EntryT, ...], tuple[UnreadableEntry, ...]]:
    """Every entry, and those that are skipped."""
    unreadable: list[UnreadableEntry] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always", UnreadableEntryWarning)
        show = warnings.showwarning

        def tell(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if isinstance(message, UnreadableEntryWarning):
                unreadable.append(message.entry)
            else:
                show(message, category, filename, lineno, file, line)

        warnings.showwarning = tell
        found = tuple(entries)
    for entry in unreadable:
        report(f"{entry.name} is skipped: {entry.problem}")
    return found, tuple(unreadable)
