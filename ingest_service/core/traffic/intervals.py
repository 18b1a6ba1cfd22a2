"""The intervals between readings: how long they usually are, and how many are too long."""

from __future__ import annotations

import numpy as np
from attrs import define, field, frozen

from ingest_service.core.traffic.curve import Int64Column

USUAL_INTERVAL_COUNT = 10**6
"""Intervals of which the median is taken, so that memory stays bounded however many follow."""

GAP_RATIO = 2
"""A reading that comes later than so many usual intervals makes a gap."""


@frozen(kw_only=True)
class IntervalSummary:
    """The median of the first intervals, rounded down, 0 where there is none; and intervals above `GAP_RATIO` of it."""

    usual_ns: int
    gap_count: int


@define
class IntervalTally:
    """Counts the intervals of one counter."""

    _first: list[Int64Column] = field(init=False, factory=list)
    _first_count: int = field(init=False, default=0)
    _usual_ns: float | None = field(init=False, default=None)
    _gap_count: int = field(init=False, default=0)

    def add(self, interval_ns: Int64Column) -> None:
        """Takes intervals, in the order of time."""
        if self._usual_ns is not None:
            self._gap_count += self._gaps(interval_ns, self._usual_ns)
            return
        missing_count = USUAL_INTERVAL_COUNT - self._first_count
        self._first.append(interval_ns[:missing_count])
        self._first_count += len(self._first[-1])
        if self._first_count == USUAL_INTERVAL_COUNT:
            self._usual_ns = self._median()
            self._gap_count = sum(self._gaps(part, self._usual_ns) for part in self._first)
            self._first.clear()
            self._gap_count += self._gaps(interval_ns[missing_count:], self._usual_ns)

    def summary(self) -> IntervalSummary:
        """What the intervals so far are like."""
        usual_ns = self._median()
        gap_count = self._gap_count + sum(self._gaps(part, usual_ns) for part in self._first)
        return IntervalSummary(usual_ns=int(usual_ns), gap_count=gap_count)

    def _median(self) -> float:
        if self._usual_ns is not None:
            return self._usual_ns
        return float(np.median(np.concatenate(self._first))) if self._first_count else 0.0

    @staticmethod
    def _gaps(interval_ns: Int64Column, usual_ns: float) -> int:
        return int(np.count_nonzero(interval_ns > GAP_RATIO * usual_ns))
