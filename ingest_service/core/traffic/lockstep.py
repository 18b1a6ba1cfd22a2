"""The counters of one port along one time axis: blocks of time in which the curve of each of them is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from attrs import define, field, frozen

from ingest_service.core.traffic.curve import CurvePiece, Float64Column, joined, points_at

BLOCK_WINDOW_COUNT = 2**18
"""Windows of the smallest width that one block holds at most, unless no reading stands in it: a bound of memory."""


@frozen(eq=False)
class CurveSlice:
    """The part of one curve that a block needs: times from the start of the block and bytes, as columns.

    The first entry is at the start of the block or before it, the last one at its end or behind it, where the curve
    goes so far.
    """

    elapsed_ns: Float64Column
    byte_count: Float64Column

    def bytes_between(self, edges_ns: Float64Column) -> Float64Column:
        """Bytes between each two of the times `edges_ns` from the start of the block; 0 where there is no curve."""
        return np.diff(np.interp(edges_ns, self.elapsed_ns, self.byte_count))


@frozen(eq=False)
class Block:
    """A stretch of time, and the curves that reach into it."""

    start_ns: int
    end_ns: int
    slices: tuple[CurveSlice, ...]


@frozen
class CounterTotal:
    """What one counter counted between two times, and how much of that time its readings tell of."""

    whole_bytes: int
    rest_bytes: float
    """What is left where the times are between readings."""
    covered_ns: int

    @property
    def byte_count(self) -> float:
        """All bytes."""
        return self.whole_bytes + self.rest_bytes


@define
class _Curve:
    """One counter's curve, as far as it is known and still needed."""

    pieces: list[CurvePiece] = field(init=False, factory=list)
    _counted_from: tuple[int, float, int] | None = field(init=False, default=None)
    _counted_to: tuple[int, float, int] = field(init=False, default=(0, 0.0, 0))
    _counted_ns: int = field(init=False, default=0)

    @property
    def first_ns(self) -> int:
        return int(self.pieces[0].time_ns[0])

    @property
    def last_ns(self) -> int:
        return int(self.pieces[-1].time_ns[-1])

    def next_ns(self, start_ns: int) -> int | None:
        """The first reading behind `start_ns`."""
        if not self.pieces or self.last_ns <= start_ns:
            return None
        piece = self._whole()
        return int(piece.time_ns[np.searchsorted(piece.time_ns, start_ns, side="right")])

    def take(self, start_ns: int, end_ns: int) -> CurveSlice | None:
        """The part for a block, which is counted and then needed no more; None where the curve does not reach it."""
        if not self.pieces or self.first_ns >= end_ns or self.last_ns <= start_ns:
            return None
        piece = self._whole()
        time_ns = piece.time_ns
        self._count(piece, max(start_ns, int(time_ns[0])), min(end_ns, int(time_ns[-1])))
        begin = max(int(np.searchsorted(time_ns, start_ns, side="right")) - 1, 0)
        stop = min(int(np.searchsorted(time_ns, end_ns, side="left")) + 1, len(time_ns))
        # From the reading at or before the end on.
        rest = max(int(np.searchsorted(time_ns, end_ns, side="right")) - 1, 0)
        self.pieces[:] = [_part(piece, rest, len(time_ns))]
        byte_count = piece.byte_count[begin:stop]
        return CurveSlice(
            elapsed_ns=(time_ns[begin:stop] - start_ns).astype(np.float64),
            byte_count=(byte_count - byte_count[0]).astype(np.float64),
        )

    def total(self) -> CounterTotal:
        """What was counted in all blocks."""
        if self._counted_from is None:
            return CounterTotal(0, 0.0, 0)
        whole_from, rest_from, uncovered_from_ns = self._counted_from
        whole_to, rest_to, uncovered_to_ns = self._counted_to
        return CounterTotal(
            whole_bytes=whole_to - whole_from,
            rest_bytes=rest_to - rest_from,
            covered_ns=self._counted_ns - (uncovered_to_ns - uncovered_from_ns),
        )

    def _whole(self) -> CurvePiece:
        piece = joined(self.pieces)
        self.pieces[:] = [piece]
        return piece

    def _count(self, piece: CurvePiece, start_ns: int, end_ns: int) -> None:
        points = points_at(piece, np.array([start_ns, end_ns], np.int64))
        start, end = zip(
            points.whole_bytes.tolist(), points.rest_bytes.tolist(), points.uncovered_ns.tolist(), strict=True
        )
        if self._counted_from is None:
            self._counted_from = start
        self._counted_to = end
        self._counted_ns += end_ns - start_ns


def _part(piece: CurvePiece, begin: int, stop: int) -> CurvePiece:
    return CurvePiece(piece.time_ns[begin:stop], piece.byte_count[begin:stop], piece.uncovered_ns[begin:stop])


@define
class Lockstep:
    """Takes the curves of the counters of one port, piece by piece, and gives them out in blocks of time, in order.

    `clip_start_ns` and `clip_end_ns` bound the time, where they are not None. Only time within them is counted.
    """

    _counter_count: int
    _smallest_window_ns: int
    _clip_start_ns: int | None = None
    _clip_end_ns: int | None = None

    _curves: list[_Curve] = field(init=False)
    start_ns: int | None = field(init=False, default=None)
    """First reading of any counter, within the bounds; None before any block, and where nothing is within them."""
    end_ns: int | None = field(init=False, default=None)
    """End of the last block."""

    def __attrs_post_init__(self) -> None:
        self._curves = [_Curve() for _ in range(self._counter_count)]

    def extend(self, counter_index: int, piece: CurvePiece) -> None:
        """The curve of a counter goes on with `piece`."""
        self._curves[counter_index].pieces.append(piece)

    def totals(self) -> Sequence[CounterTotal]:
        """What each counter counted in the blocks."""
        return [curve.total() for curve in self._curves]

    def blocks(self, *, is_complete: bool) -> Iterator[Block]:
        """The blocks for which enough is known; `is_complete`: the curves do not go on, and these are the last."""
        known_end_ns = self._known_end_ns(is_complete=is_complete)
        if known_end_ns is None:
            return
        if self.end_ns is None:
            first_ns = min(curve.first_ns for curve in self._curves if curve.pieces)
            start_ns = first_ns if self._clip_start_ns is None else max(first_ns, self._clip_start_ns)
            if start_ns > known_end_ns:
                return
            self.start_ns = self.end_ns = start_ns
        while self.end_ns < known_end_ns:
            start_ns, self.end_ns = self.end_ns, self._block_end_ns(self.end_ns, known_end_ns)
            slices = [curve.take(start_ns, self.end_ns) for curve in self._curves]
            yield Block(start_ns, self.end_ns, tuple(part for part in slices if part is not None))

    def _known_end_ns(self, *, is_complete: bool) -> int | None:
        """Up to where every curve is known; None where one of them has not begun."""
        begun = [curve for curve in self._curves if curve.pieces]
        if not begun or (len(begun) < len(self._curves) and not is_complete):
            return None
        ends_ns = [curve.last_ns for curve in begun]
        end_ns = max(ends_ns) if is_complete else min(ends_ns)
        return end_ns if self._clip_end_ns is None else min(end_ns, self._clip_end_ns)

    def _block_end_ns(self, start_ns: int, known_end_ns: int) -> int:
        """Where a block ends: it holds few windows, or no reading."""
        longest_ns = start_ns + BLOCK_WINDOW_COUNT * self._smallest_window_ns
        if known_end_ns <= longest_ns:
            return known_end_ns
        next_ns = [at_ns for curve in self._curves if (at_ns := curve.next_ns(start_ns)) is not None]
        return max(longest_ns, min(known_end_ns, *next_ns))
