"""The curve of one counter: bytes counted since its first reading, straight between two readings."""

from __future__ import annotations

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

Int64Column = NDArray[np.int64]
Float64Column = NDArray[np.float64]
Flags = NDArray[np.bool_]

LARGEST_NS = 2**63 - 1
NS_PER_SECOND = 10**9
BITS_PER_BYTE = 8


@frozen(eq=False)
class CurvePiece:
    """A stretch of a curve as equal-length columns, one entry per reading, and at least one.

    Pieces follow each other: the first entry is the last one of the piece before. `time_ns` rises. `byte_count` and
    `uncovered_ns` count from the first reading of the counter: its bytes, and the time over which nobody knows what it
    counted, since it began again. Neither falls.
    """

    time_ns: Int64Column
    byte_count: Int64Column
    uncovered_ns: Int64Column


@frozen(eq=False)
class CurvePoints:
    """A curve at several times, as columns; bytes as whole ones and what is left, below 1, so that sums are exact."""

    whole_bytes: Int64Column
    rest_bytes: Float64Column
    uncovered_ns: Int64Column


def points_at(piece: CurvePiece, times_ns: Int64Column) -> CurvePoints:
    """The curve at `times_ns`, each of them within the piece."""
    before = np.searchsorted(piece.time_ns, times_ns, side="right") - 1
    after = np.minimum(before + 1, len(piece.time_ns) - 1)
    passed_ns = times_ns - piece.time_ns[before]
    # No interval follows the last reading, and none of it has passed there: any length but 0 will do.
    interval_ns = np.maximum(piece.time_ns[after] - piece.time_ns[before], 1)
    interval_bytes = piece.byte_count[after] - piece.byte_count[before]
    passed_bytes = interval_bytes * (passed_ns / interval_ns)
    whole_bytes = np.floor(passed_bytes)
    is_uncovered = piece.uncovered_ns[after] > piece.uncovered_ns[before]
    return CurvePoints(
        whole_bytes=piece.byte_count[before] + whole_bytes.astype(np.int64),
        rest_bytes=passed_bytes - whole_bytes,
        uncovered_ns=piece.uncovered_ns[before] + np.where(is_uncovered, passed_ns, 0),
    )


def joined(pieces: list[CurvePiece]) -> CurvePiece:
    """Pieces that follow each other as one; there is at least one."""
    first, *others = pieces
    if not others:
        return first
    return CurvePiece(
        time_ns=np.concatenate([first.time_ns, *(piece.time_ns[1:] for piece in others)]),
        byte_count=np.concatenate([first.byte_count, *(piece.byte_count[1:] for piece in others)]),
        uncovered_ns=np.concatenate([first.uncovered_ns, *(piece.uncovered_ns[1:] for piece in others)]),
    )
