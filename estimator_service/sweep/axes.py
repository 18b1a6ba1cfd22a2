"""The points of a sweep: which value each axis has at which index. Ranges are never written out."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from linkbound.domain.sweep import SweepAxis

Integers = NDArray[np.int64]


@frozen(eq=False)
class AxisColumn:
    """One axis. `stride` is the distance of two points between which it moves on by one value."""

    axis: SweepAxis
    stride: int
    listed: Integers | None

    def positions(self, indices: Integers) -> Integers:
        """The position of the axis at the points `indices`, counted from 0."""
        return indices // self.stride % self.axis.value_count

    def values(self, indices: Integers) -> Integers:
        """The value of the axis at the points `indices`."""
        positions = self.positions(indices)
        if self.listed is not None:
            return self.listed[positions]
        return np.int64(self.axis.value_at(0)) + positions * np.int64(_step(self.axis))


def axis_columns(axes: Sequence[SweepAxis]) -> tuple[AxisColumn, ...]:
    """The columns of `axes`, the last of which varies fastest."""
    return tuple(
        AxisColumn(
            axis=axis,
            stride=math.prod(faster.value_count for faster in axes[index + 1 :]),
            listed=np.array(axis.values, dtype=np.int64) if axis.range is None else None,
        )
        for index, axis in enumerate(axes)
    )


def _step(axis: SweepAxis) -> int:
    return 0 if axis.range is None else axis.range.step
