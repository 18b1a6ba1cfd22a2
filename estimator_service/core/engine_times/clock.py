"""Transfers of passes, worked out once for each number of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from estimator_service.core.engine_times.network import (
    Path,
    bandwidth_change,
    likely_seconds,
    pass_change,
    pass_seconds,
)
from estimator_service.core.engine_times.reach import Change
from estimator_service.core.layouts.load import RowCounts
from estimator_service.core.layouts.rows import StageKind
from linkbound.domain.calibration import Calibration
from linkbound.domain.estimate import Estimate

Value = TypeVar("Value")


class _ByRows(Generic[Value]):
    """A value of one pass, which depends on its rows alone. For one answer, not for threads."""

    def __init__(self, value_of: Callable[[RowCounts], Value]) -> None:
        self._value_of = value_of
        self._values: dict[tuple[float, int], Value] = {}

    def __call__(self, counts: RowCounts) -> Value:
        key = counts.any_tokens, counts.logits_rows
        if key not in self._values:
            self._values[key] = self._value_of(counts)
        return self._values[key]


class LinkClock:
    """Seconds of the transfers of one pass over a link."""

    def __init__(
        self, kinds: Sequence[StageKind], path: Path, calibration: Calibration | None = None, counted_ratio: float = 1.0
    ) -> None:
        self._seconds = _ByRows(lambda counts: pass_seconds(kinds, counts, path, calibration, counted_ratio))

    def seconds(self, counts: RowCounts) -> Estimate:
        """At least, as expected where something says so, at most."""
        return self._seconds(counts)

    def likely_seconds(self, counts: RowCounts) -> float:
        """As expected, else at most."""
        return likely_seconds(self._seconds(counts))

    def least_seconds(self, counts: RowCounts) -> float:
        """Bytes over the effective rate."""
        return self._seconds(counts).lower


class ChangeClock:
    """Seconds that the transfers of one pass take longer over another link."""

    def __init__(
        self, kinds: Sequence[StageKind], old: Path, new: Path, calibration: Calibration | None = None
    ) -> None:
        self._change = _ByRows(lambda counts: pass_change(kinds, counts, old, new, calibration))
        self._bandwidth = _ByRows(lambda counts: bandwidth_change(kinds, counts, old, new))

    def change(self, counts: RowCounts) -> Change:
        """At least, as expected, at most."""
        return self._change(counts)

    def bandwidth_seconds(self, counts: RowCounts) -> float:
        """Bytes over both effective rates."""
        return self._bandwidth(counts)
