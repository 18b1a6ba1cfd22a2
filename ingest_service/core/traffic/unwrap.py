"""From raw readings of a counter to its curve of bytes, however many readings come at a time.

A reading counts at the middle of its read: the counter was taken somewhere in it, and no other choice has a smaller
largest error. Where the next reading began before that, it counts just before the next one.
"""

from __future__ import annotations

import numpy as np
from attrs import define, field, frozen

from ingest_service.core.traffic.curve import LARGEST_NS, CurvePiece, Flags, Int64Column
from ingest_service.core.traffic.intervals import IntervalTally
from ingest_service.core.traffic.steps import CounterWidth

LARGEST_TOTAL_BYTES = 2**62
"""Bytes after which nothing more is counted, or sums would leave 64 bits: the fastest port takes 9 months for them."""


@frozen(eq=False)
class Readings:
    """Readings of one series in the order in which they were stored, as equal-length columns; at least one.

    `time_ns` is CLOCK_MONOTONIC before each read, `read_duration_ns` 0 where it is not known.
    """

    series_id: int
    time_ns: Int64Column
    value: Int64Column
    read_duration_ns: Int64Column


@frozen(kw_only=True)
class ReadingCounts:
    """What became of the readings of a counter, in the words of `PortTraffic`."""

    sample_count: int
    wrap_count: int
    reset_count: int
    gap_count: int
    duplicate_count: int
    late_count: int
    interval_ns: int


@frozen
class _Held:
    """The last reading: the next one may take its place, and says when it counts at the latest."""

    time_ns: int
    value: int
    read_duration_ns: int
    is_break: bool


@frozen
class _End:
    """Where the curve ends so far, with the value of the counter there."""

    time_ns: int
    value: int
    byte_count: int
    uncovered_ns: int


@define
class CounterUnwrapper:
    """Takes the readings of one counter in the order in which they were stored.

    Several series may be of one counter; at each time the reading that was stored first counts. Where
    `is_boot_known` is False, series may be of several boots, and the counter begins again between them.
    """

    _width: CounterWidth
    _is_boot_known: bool = True

    _held: _Held | None = field(init=False, default=None)
    _is_break_next: bool = field(init=False, default=False)
    """Whether the next reading that is kept begins again, since a late one at the end did."""
    _end: _End | None = field(init=False, default=None)
    _last_series_id: int | None = field(init=False, default=None)
    _last_time_ns: dict[int, int] = field(init=False, factory=dict)
    _intervals: IntervalTally = field(init=False, factory=IntervalTally)
    _sample_count: int = field(init=False, default=0)
    _wrap_count: int = field(init=False, default=0)
    _reset_count: int = field(init=False, default=0)
    _duplicate_count: int = field(init=False, default=0)
    _late_count: int = field(init=False, default=0)

    @property
    def counts(self) -> ReadingCounts:
        """What became of the readings so far."""
        intervals = self._intervals.summary()
        return ReadingCounts(
            sample_count=self._sample_count,
            wrap_count=self._wrap_count,
            reset_count=self._reset_count,
            gap_count=intervals.gap_count,
            duplicate_count=self._duplicate_count,
            late_count=self._late_count,
            interval_ns=intervals.usual_ns,
        )

    def feed(self, readings: Readings) -> CurvePiece | None:
        """The curve up to the last reading but one; None where it does not grow."""
        self._sample_count += len(readings.time_ns)
        breaks = self._clock_breaks(readings)
        time_ns, value, duration_ns = readings.time_ns, readings.value, readings.read_duration_ns
        held = self._held
        if held is not None:
            time_ns = np.concatenate([[held.time_ns], time_ns])
            value = np.concatenate([[held.value], value])
            duration_ns = np.concatenate([[held.read_duration_ns], duration_ns])
            breaks = np.concatenate([[held.is_break], breaks])
        if not np.all(time_ns[1:] > time_ns[:-1]):
            kept = self._kept(time_ns)
            time_ns, value, duration_ns = time_ns[kept], value[kept], duration_ns[kept]
            # A break at a reading that is left out is one at the next that is kept.
            break_count = np.cumsum(breaks)
            self._is_break_next = bool(break_count[-1] > break_count[kept[-1]])
            breaks = np.diff(break_count[kept], prepend=0) > 0
        self._held = _Held(int(time_ns[-1]), int(value[-1]), int(duration_ns[-1]), bool(breaks[-1]))
        if len(time_ns) == 1:
            return None
        half_ns = np.minimum(duration_ns[:-1] >> 1, time_ns[1:] - time_ns[:-1] - 1)
        return self._extended(time_ns[:-1] + half_ns, value[:-1], breaks[:-1])

    def finish(self) -> CurvePiece | None:
        """The rest of the curve, up to the last reading; None where there was none."""
        held, self._held = self._held, None
        if held is None:
            return None
        time_ns = held.time_ns + min(held.read_duration_ns >> 1, LARGEST_NS - held.time_ns)
        return self._extended(
            np.array([time_ns], np.int64), np.array([held.value], np.int64), np.array([held.is_break], np.bool_)
        )

    def _clock_breaks(self, readings: Readings) -> Flags:
        """Readings whose clock went back since the one before, or is perhaps that of another boot."""
        series_id, time_ns = readings.series_id, readings.time_ns
        breaks: Flags = np.diff(time_ns, prepend=self._last_time_ns.get(series_id, 0)) < 0
        if self._is_break_next or (not self._is_boot_known and self._last_series_id not in (None, series_id)):
            breaks[0] = True
        self._is_break_next = False
        self._last_series_id = series_id
        self._last_time_ns[series_id] = int(time_ns[-1])
        return breaks

    def _kept(self, time_ns: Int64Column) -> Int64Column:
        """Which readings are neither late nor followed by another one of their time."""
        kept: Int64Column = np.flatnonzero(time_ns >= np.maximum.accumulate(time_ns))
        self._late_count += len(time_ns) - len(kept)
        is_last_of_time = np.append(np.diff(time_ns[kept]) > 0, True)
        self._duplicate_count += len(kept) - int(np.count_nonzero(is_last_of_time))
        last: Int64Column = kept[is_last_of_time]
        return last

    def _extended(self, time_ns: Int64Column, value: Int64Column, breaks: Flags) -> CurvePiece:
        """The curve from its end so far over the readings at `time_ns`, the last of which is its end then."""
        end = self._end
        if end is None:
            end = _End(int(time_ns[0]), int(value[0]), 0, 0)
            time_ns, value, breaks = time_ns[1:], value[1:], breaks[1:]
        time_ns = np.concatenate([[end.time_ns], time_ns])
        value = np.concatenate([[end.value], value])
        elapsed_ns = np.diff(time_ns)
        self._intervals.add(elapsed_ns)
        steps = self._width.steps(value, elapsed_ns, breaks)
        if end.byte_count + steps.byte_count.sum(dtype=np.float64) > LARGEST_TOTAL_BYTES:
            steps = self._width.steps(value, elapsed_ns, np.ones_like(breaks))
        self._wrap_count += int(np.count_nonzero(steps.wraps))
        reset_count = int(np.count_nonzero(steps.begins_again))
        self._reset_count += reset_count
        piece = CurvePiece(
            time_ns=time_ns,
            byte_count=np.concatenate([[end.byte_count], end.byte_count + np.cumsum(steps.byte_count)]),
            uncovered_ns=(
                np.concatenate([[end.uncovered_ns], end.uncovered_ns + np.cumsum(elapsed_ns * steps.begins_again)])
                if reset_count
                else np.broadcast_to(np.int64(end.uncovered_ns), time_ns.shape)
            ),
        )
        self._end = _End(int(time_ns[-1]), int(value[-1]), int(piece.byte_count[-1]), int(piece.uncovered_ns[-1]))
        return piece
