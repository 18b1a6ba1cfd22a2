"""Sweeps that survive their server: the stream is opened again, at the point after the last one that came."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import attrs

from linkbound.client.backend import AsyncBackend, Backend
from linkbound.client.resuming import IndexedProgress, resumed, resumed_async
from linkbound.domain.sweep import SweepColumns, SweepRequest


class SweepProgress(IndexedProgress[SweepRequest, SweepColumns]):
    """Where a sweep is, and whether and when it may be asked for again."""

    stream_noun = "sweep"
    entry_noun = "point"

    def __init__(self, request: SweepRequest, timeout_seconds: float | None) -> None:
        super().__init__(request.start_index, timeout_seconds)
        self._request = request

    @property
    def is_finished(self) -> bool:
        """Whether every point has come."""
        return self._next_index >= self._request.total_point_count

    def next_request(self) -> SweepRequest:
        """The points that are still to come."""
        return attrs.evolve(self._request, start_index=self._next_index)

    def take(self, part: SweepColumns) -> SweepColumns:
        """`part`, which came; those of a sweep that went on elsewhere do not say again what was assumed.

        Raises UnavailableError where points are missing before them, FailedPreconditionError (ESTIMATOR_CHANGED) where
        other formulas made them.
        """
        is_first = self._next_index == self._request.start_index
        self._advance(part.start_index, part.end_index, part.estimator_version)
        return part if is_first else attrs.evolve(part, assumptions=())


def swept(backend: Backend, request: SweepRequest, timeout_seconds: float | None) -> Iterator[SweepColumns]:
    """Every stretch of points of `request`, over as many streams as it takes."""
    return resumed(backend.sweep, SweepProgress(request, timeout_seconds))


def swept_async(
    backend: AsyncBackend, request: SweepRequest, timeout_seconds: float | None
) -> AsyncIterator[SweepColumns]:
    """Every stretch of points of `request`, over as many streams as it takes."""
    return resumed_async(backend.sweep, SweepProgress(request, timeout_seconds))
