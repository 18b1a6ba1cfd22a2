"""The course of the windows of one width, as few points as were asked for."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from ingest_service.core.traffic.curve import Float64Column
from linkbound.domain.traffic import TrafficPoint


@define
class _Group:
    """Windows that stand together."""

    total: float
    least: float
    peak: float
    count: int

    def add(self, total: float, least: float, peak: float, count: int) -> None:
        self.total += total
        self.least = min(self.least, least)
        self.peak = max(self.peak, peak)
        self.count += count


@define
class PointTally:
    """Groups windows so that those at most `largest_window_count` make at most `max_point_count` points; 0: none."""

    _largest_window_count: int
    _max_point_count: int
    _first_index: int | None = field(init=False, default=None)
    _groups: list[_Group] = field(init=False, factory=list)

    @property
    def _group_size(self) -> int:
        return max(-(-self._largest_window_count // self._max_point_count), 1)

    def add(self, first: int, values: Float64Column) -> None:
        """Takes the windows from the index `first` on, which follow those before."""
        if not self._max_point_count:
            return
        offset = self._offset(first)
        size = self._group_size
        # Where a group begins within the values, and the part of one that began before.
        starts = np.arange(-(offset % size), len(values), size)
        starts[0] = 0
        totals = np.add.reduceat(values, starts)
        least = np.minimum.reduceat(values, starts)
        peaks = np.maximum.reduceat(values, starts)
        counts = np.diff(starts, append=len(values))
        group = offset // size
        columns = (totals.tolist(), least.tolist(), peaks.tolist(), counts.tolist())
        for index, (total, lowest, highest, count) in enumerate(zip(*columns, strict=True), group):
            self._add(index, total, lowest, highest, count)

    def add_run(self, first: int, value: float, count: int) -> None:
        """Takes `count` windows of one value, which follow those before."""
        if not self._max_point_count:
            return
        offset = self._offset(first)
        end = offset + count
        while offset < end:
            index = offset // self._group_size
            inside = min((index + 1) * self._group_size, end) - offset
            self._add(index, value * inside, value, value, inside)
            offset += inside

    def points(self, window_ns: int, scale: float) -> tuple[TrafficPoint, ...]:
        """The points; rates are values times `scale`."""
        start = (self._first_index or 0) * window_ns
        return tuple(
            TrafficPoint(
                start_ns=start + index * self._group_size * window_ns,
                mean_bits_per_second=group.total / group.count * scale,
                least_bits_per_second=group.least * scale,
                peak_bits_per_second=group.peak * scale,
            )
            for index, group in enumerate(self._groups)
        )

    def _offset(self, first: int) -> int:
        if self._first_index is None:
            self._first_index = first
        return first - self._first_index

    def _add(self, index: int, total: float, least: float, peak: float, count: int) -> None:
        if index < len(self._groups):
            self._groups[index].add(total, least, peak, count)
        else:
            self._groups.append(_Group(total, least, peak, count))
