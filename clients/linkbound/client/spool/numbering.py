"""Which sequence number a batch has. No I/O.

A spool counts its batches itself: 1, 2, 3, ... are their *indexes*, known without the service. The *sequence number* is
the index plus an offset, and the offset is settled when a process opens its first stream. Until then nothing that this
process wrote has left the machine, so it can still move behind what the service holds: batches that an earlier spool of
this writer sent, or that this one sent and then lost with the power. So no number ever stands for two contents.

An offset holds for a range of indexes, from `first_index` to that of the next range.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Sequence

from attrs import define, field, frozen


@frozen
class NumberRange:
    """From `first_index` on, a number is the index plus `offset`."""

    first_index: int
    offset: int


@define
class Numbering:
    """`unsettled_from` is the first index without a number yet; None where all have one."""

    ranges: list[NumberRange] = field(factory=list)
    unsettled_from: int | None = 1

    @property
    def is_settled(self) -> bool:
        """Whether every batch has a number, those to come included."""
        return self.unsettled_from is None

    @property
    def settled_number(self) -> int:
        """The last number before the batches that have none; 0 where there is none."""
        if self.unsettled_from is None:
            raise ValueError("every batch has a number")
        return self.unsettled_from - 1 + self._last_offset

    def begin(self, next_index: int) -> None:
        """A process begins: what it writes, from `next_index` on, has no number yet."""
        if self.unsettled_from is None or self.unsettled_from > next_index:
            self.unsettled_from = next_index

    def settle(self, committed_sequence_number: int) -> int:
        """The service holds this number: what has none yet comes behind it. Returns how many numbers were left out."""
        if self.unsettled_from is None:
            raise ValueError("every batch has a number")
        offset = max(self._last_offset, committed_sequence_number + 1 - self.unsettled_from)
        skipped_count = offset - self._last_offset
        if skipped_count or not self.ranges:
            self.ranges = [r for r in self.ranges if r.first_index < self.unsettled_from]
            self.ranges.append(NumberRange(self.unsettled_from, offset))
        self.unsettled_from = None
        return skipped_count

    def close_gap(self, index: int) -> None:
        """The batch `index` is left out: those behind it, none of which was ever sent, take its number and the next."""
        position = bisect_right(self._first_indexes, index) - 1
        earlier, later = self.ranges[: position + 1], self.ranges[position + 1 :]
        if not later or later[0].first_index > index + 1:
            later.insert(0, NumberRange(index + 1, earlier[-1].offset))
        self.ranges = [*earlier, *(NumberRange(r.first_index, r.offset - 1) for r in later)]

    def number_of(self, index: int) -> int:
        """The sequence number of a batch that has one; 0 before the first range."""
        position = bisect_right(self._first_indexes, index) - 1
        return index + self.ranges[position].offset if position >= 0 else 0

    def index_of(self, number: int) -> int | None:
        """The index of the batch with this number; None where the numbers jump over it."""
        for position in range(len(self.ranges) - 1, -1, -1):
            index = number - self.ranges[position].offset
            if index >= self.ranges[position].first_index:
                is_within = position + 1 == len(self.ranges) or index < self.ranges[position + 1].first_index
                return index if is_within else None
        return None

    def last_index_up_to(self, number: int) -> int:
        """The highest index whose number is at most `number`; one below the first range where all are higher."""
        for position in range(len(self.ranges) - 1, -1, -1):
            index = number - self.ranges[position].offset
            if index >= self.ranges[position].first_index:
                following = self.ranges[position + 1].first_index if position + 1 < len(self.ranges) else index + 1
                return min(index, following - 1)
        return self.ranges[0].first_index - 1 if self.ranges else 0

    def first_number(self, first_index: int) -> int:
        """The lowest number that can be told of the batches from `first_index` on; 0 where none can."""
        return self.number_of(max(first_index, self.ranges[0].first_index)) if self.ranges else 0

    def forget_oldest(self, range_count: int) -> None:
        """Keep so many ranges at most. Batches of those before can be sent no second time."""
        del self.ranges[:-range_count]

    def forget_before(self, index: int) -> None:
        """No batch below `index` is kept any more."""
        while len(self.ranges) > 1 and self.ranges[1].first_index <= index:
            del self.ranges[0]

    @property
    def _first_indexes(self) -> Sequence[int]:
        return [r.first_index for r in self.ranges]

    @property
    def _last_offset(self) -> int:
        return self.ranges[-1].offset if self.ranges else 0


@frozen(kw_only=True)
class SpoolState:
    """What the files of a spool cannot tell by themselves.

    `next_index` counts where no file is left. Up to `delivered_index` the service held everything when a process let go
    of the spool in order; it may have lost it since, so it is a hint for people.
    """

    numbering: Numbering
    next_index: int
    delivered_index: int = 0


def state_to_text(state: SpoolState) -> str:
    """A state as text."""
    return json.dumps(
        {
            "ranges": [[r.first_index, r.offset] for r in state.numbering.ranges],
            "unsettled_from": state.numbering.unsettled_from,
            "next_index": state.next_index,
            "delivered_index": state.delivered_index,
        }
    )


def state_from_text(text: str) -> SpoolState:
    """The state in `text`."""
    fields = json.loads(text)
    ranges = [NumberRange(first_index, offset) for first_index, offset in fields["ranges"]]
    return SpoolState(
        numbering=Numbering(ranges, fields["unsettled_from"]),
        next_index=fields["next_index"],
        delivered_index=fields["delivered_index"],
    )
