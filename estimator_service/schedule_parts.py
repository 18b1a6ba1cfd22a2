"""An answer to a schedule question in parts of bounded size, from any entry on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from estimator_service.core.version import ESTIMATOR_VERSION
from estimator_service.core.wanted import while_wanted
from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.schedule import SchedulePass, SchedulePasses, ScheduleSummary

LARGEST_SHARE_COUNT_OF_PART = 50_000
"""Shares of the passes of one part at most, a pass counting as `SHARES_OF_PASS` of them beside its own.

In a message a share takes at most 13 bytes, a pass without its shares at most 150: below 0.7 MB, where clients take
4 MiB or more.
"""
SHARES_OF_PASS = 12


def parts_of(
    entries: Iterable[SchedulePass | ScheduleSummary], start_index: int
) -> Iterator[SchedulePasses | ScheduleSummary]:
    """What comes one by one, without the passes before `start_index`, as many passes at a time as one part may hold.

    Raises InvalidArgumentError, from the iterator, where there are fewer passes than that.
    """
    held: list[SchedulePass] = []
    share_count = 0
    for index, entry in enumerate(while_wanted(entries)):
        if isinstance(entry, ScheduleSummary):
            if index < start_index:
                problem = f"{start_index} is behind the last of the {index} entries of the passes"
                raise InvalidArgumentError([Violation("start_index", problem)])
            if held:
                yield _passes(index, held)
            yield entry
            return
        if index >= start_index:
            size = SHARES_OF_PASS + len(entry.scheduled)
            if held and share_count + size > LARGEST_SHARE_COUNT_OF_PART:
                yield _passes(index, held)
                held, share_count = [], 0
            held.append(entry)
            share_count += size


def _passes(end_index: int, held: list[SchedulePass]) -> SchedulePasses:
    return SchedulePasses(start_index=end_index - len(held), passes=tuple(held), estimator_version=ESTIMATOR_VERSION)
