"""Rates over windows of one width, block by block: the peak, the 99th percentile, and the course as points."""

from __future__ import annotations

import numpy as np
from attrs import define, field, frozen

from ingest_service.core.traffic.curve import BITS_PER_BYTE, NS_PER_SECOND, Float64Column
from ingest_service.core.traffic.largest import LargestValues
from ingest_service.core.traffic.lockstep import BLOCK_WINDOW_COUNT, Block
from ingest_service.core.traffic.points import PointTally
from linkbound.domain.traffic import TrafficPoint

PERCENTILE = 99


@frozen(kw_only=True)
class WindowRates:
    """Rates over windows of one width, in bits a second."""

    window_ns: int
    window_count: int
    peak_bits_per_second: float
    peak_start_ns: int
    p99_bits_per_second: float
    points: tuple[TrafficPoint, ...]


def rank_from_the_top(window_count: int) -> int:
    """Which of so many windows, the largest being the first, is the least that 99 % of them do not exceed."""
    rank = -(-PERCENTILE * window_count // 100)
    return window_count - rank + 1


@define
class WindowTally:
    """Windows at whole multiples of `window_ns`, of which `largest_window_count` is never less than there are."""

    _window_ns: int
    _largest_window_count: int
    _max_point_count: int

    _largest: LargestValues = field(init=False)
    _points: PointTally = field(init=False)
    _window_count: int = field(init=False, default=0)
    _peak_bytes: float = field(init=False, default=-1.0)
    _peak_index: int = field(init=False, default=0)
    _open_index: int | None = field(init=False, default=None)
    """The last window: the next block may add to it."""
    _open_bytes: float = field(init=False, default=0.0)

    def __attrs_post_init__(self) -> None:
        self._largest = LargestValues(rank_from_the_top(self._largest_window_count))
        self._points = PointTally(self._largest_window_count, self._max_point_count)

    def add(self, block: Block) -> None:
        """Takes the next block, which begins where the last one ended."""
        first, last = block.start_ns // self._window_ns, (block.end_ns - 1) // self._window_ns
        if last - first <= BLOCK_WINDOW_COUNT:
            self._add_windows(first, self._bytes(block, first, last))
            return
        # No reading stands in such a block: all whole windows of it are alike.
        inner = self._bytes(block, first + 1, first + 1)
        self._add_windows(first, self._bytes(block, first, first))
        self._close_open()
        self._close_run(first + 1, last - first - 1, float(inner[0]))
        self._add_windows(last, self._bytes(block, last, last))

    def finish(self) -> WindowRates:
        """What all windows came to."""
        self._close_open()
        scale = BITS_PER_BYTE * NS_PER_SECOND / self._window_ns
        return WindowRates(
            window_ns=self._window_ns,
            window_count=self._window_count,
            peak_bits_per_second=max(self._peak_bytes, 0.0) * scale,
            peak_start_ns=self._peak_index * self._window_ns,
            p99_bits_per_second=self._largest.value_at(rank_from_the_top(self._window_count)) * scale,
            points=self._points.points(self._window_ns, scale),
        )

    def _bytes(self, block: Block, first: int, last: int) -> Float64Column:
        """Bytes of the block in the windows from `first` to `last`."""
        start_ns = max(first * self._window_ns, block.start_ns)
        end_ns = min((last + 1) * self._window_ns, block.end_ns)
        inner_ns = np.arange(first + 1, last + 1) * np.int64(self._window_ns)
        elapsed_ns = np.concatenate([[start_ns], inner_ns, [end_ns]]) - block.start_ns
        byte_count = np.zeros(last - first + 1)
        for curve in block.slices:
            byte_count += curve.bytes_between(elapsed_ns.astype(np.float64))
        return byte_count

    def _add_windows(self, first: int, byte_count: Float64Column) -> None:
        if self._open_index == first:
            byte_count[0] += self._open_bytes
            self._open_index = None
        self._close_open()
        self._close(first, byte_count[:-1])
        self._open_index, self._open_bytes = first + len(byte_count) - 1, float(byte_count[-1])

    def _close_open(self) -> None:
        if self._open_index is not None:
            self._close(self._open_index, np.array([self._open_bytes]))
            self._open_index = None

    def _close(self, first: int, byte_count: Float64Column) -> None:
        """Takes windows that nothing is added to any more."""
        if not len(byte_count):
            return
        highest = int(np.argmax(byte_count))
        self._note_peak(first + highest, float(byte_count[highest]))
        self._window_count += len(byte_count)
        self._largest.add(byte_count)
        self._points.add(first, byte_count)

    def _close_run(self, first: int, count: int, byte_count: float) -> None:
        """Takes `count` windows of equally many bytes."""
        self._note_peak(first, byte_count)
        self._window_count += count
        self._largest.add_run(byte_count, count)
        self._points.add_run(first, byte_count, count)

    def _note_peak(self, index: int, byte_count: float) -> None:
        if byte_count > self._peak_bytes:
            self._peak_bytes, self._peak_index = byte_count, index
