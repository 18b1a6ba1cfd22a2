"""Makes columns of what a message holds with NumPy: a fraction of the time that one number after the other takes."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]


def plain(numbers: Collection[int]) -> memoryview:
    """`numbers`, each within signed 64 bits, as they lie in memory."""
    return _as_array(numbers).data


def running_sums(deltas: Collection[int]) -> memoryview:
    """The sums of `deltas` up to each, in 64-bit two's complement."""
    return np.cumsum(_as_array(deltas), dtype=np.int64).data


def _as_array(numbers: Collection[int]) -> Int64s:
    # Repeated fields of newer protobuf runtimes hand over their numbers in one piece.
    if hasattr(numbers, "__array__"):
        return np.asarray(numbers, dtype=np.int64)
    return np.fromiter(numbers, np.int64, count=len(numbers))
