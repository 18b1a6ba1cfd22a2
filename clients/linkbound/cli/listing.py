"""Lists of the catalogue, which go on without an entry whose file is broken: it is told on stderr."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TypeVar

from linkbound.cli.failures import report
from linkbound.cli.notices import tell_of
from linkbound.domain.paging import UnreadableEntry, UnreadableEntryWarning

EntryT = TypeVar("EntryT")


def listed(entries: Iterator[EntryT]) -> tuple[tuple[EntryT, ...], tuple[UnreadableEntry, ...]]:
    """Every entry, and those that are skipped."""
    unreadable: list[UnreadableEntry] = []
    with warnings.catch_warnings():
        tell_of(UnreadableEntryWarning, lambda warning: unreadable.append(warning.entry))
        found = tuple(entries)
    for entry in unreadable:
        report(f"{entry.name} is skipped: {entry.problem}")
    return found, tuple(unreadable)
