"""The largest of many values, without keeping the others."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from ingest_service.core.traffic.curve import Float64Column

SPARE_COUNT = 2**16
"""Values that may wait before those that are not needed are dropped."""


@define
class LargestValues:
    """Keeps the `kept_count` largest values, and a few more."""

    _kept_count: int
    _values: list[Float64Column] = field(init=False, factory=list)
    _value_count: int = field(init=False, default=0)
    _least_kept: float = field(init=False, default=-np.inf)
    _runs: list[tuple[float, int]] = field(init=False, factory=list)

    def add(self, values: Float64Column) -> None:
        """Takes values."""
        large = values[values > self._least_kept]
        self._values.append(large)
        self._value_count += len(large)
        if self._value_count > 2 * self._kept_count + SPARE_COUNT:
            everything = np.concatenate(self._values)
            place = len(everything) - self._kept_count
            kept = np.partition(everything, place)[place:]
            # What equals the least is as good as it.
            self._least_kept = float(kept.min())
            self._values, self._value_count = [kept], len(kept)

    def add_run(self, value: float, count: int) -> None:
        """Takes `value` so many times."""
        self._runs.append((value, count))

    def value_at(self, rank: int) -> float:
        """The value at `rank`, the largest being the first; 0 where there are none. At most `kept_count`."""
        if not self._value_count and not self._runs:
            return 0.0
        values = np.concatenate([*self._values, [value for value, _ in self._runs]])
        counts = np.concatenate([np.ones(self._value_count, np.int64), [count for _, count in self._runs]])
        falling = np.argsort(-values, kind="stable")
        place = int(np.searchsorted(np.cumsum(counts[falling]), rank))
        return float(values[falling[min(place, len(falling) - 1)]])
