"""Sweeps that survive their server: the stream is opened again, at the point after the last one that came.

Pure but for the clock: one class keeps where a sweep is, and the two APIs only differ in how they wait.
"""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, closing

import attrs

from linkbound.client.backend import AsyncBackend, Backend
from linkbound.domain.errors import DeadlineExceededError, FailedPreconditionError, UnavailableError
from linkbound.domain.sweep import SweepColumns, SweepRequest

FIRST_ATTEMPT_COUNT = 5
"""Attempts before anything has come; as many as gRPC makes of a unary call."""
ATTEMPT_COUNT = 10
"""Attempts without progress once something has come: a server that is replaced takes a while."""
SHORTEST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 2.0


class SweepProgress:
    """Where a sweep is, and whether and when it may be asked for again."""

    def __init__(self, request: SweepRequest, timeout_seconds: float | None) -> None:
        self._request = request
        self._give_up_time = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        self._next_index = request.start_index
        self._failure_count = 0
        self._estimator_version = ""

    @property
    def is_finished(self) -> bool:
        """Whether every point has come."""
        return self._next_index >= self._request.total_point_count

    @property
    def request(self) -> SweepRequest:
        """The points that are still to come."""
        return attrs.evolve(self._request, start_index=self._next_index)

    @property
    def remaining_seconds(self) -> float | None:
        """Time until the caller gives up; None: never. Raises DeadlineExceededError once that is past."""
        if self._give_up_time is None:
            return None
        remaining = self._give_up_time - time.monotonic()
        if remaining <= 0:
            raise DeadlineExceededError(f"the sweep was not done in time; it is at point {self._next_index}")
        return remaining

    def take(self, columns: SweepColumns) -> SweepColumns:
        """`columns`, which came; those of a sweep that went on elsewhere do not say again what was assumed.

        Raises UnavailableError where points are missing before them, FailedPreconditionError (ESTIMATOR_CHANGED) where
        other formulas made them.
        """
        if columns.start_index != self._next_index or columns.point_count == 0:
            raise _broken(f"point {columns.start_index} came where point {self._next_index} was due")
        if self._estimator_version not in ("", columns.estimator_version):
            raise FailedPreconditionError(
                f"the sweep began with version {self._estimator_version} of the formulas and would go on with"
                f" {columns.estimator_version} at point {self._next_index}",
                reason="ESTIMATOR_CHANGED",
                metadata={"nextIndex": str(self._next_index)},
            )
        is_first = self._next_index == self._request.start_index
        self._estimator_version = columns.estimator_version
        self._next_index = columns.end_index
        self._failure_count = 0
        return columns if is_first else attrs.evolve(columns, assumptions=())

    def check_finished(self) -> None:
        """Raise UnavailableError where a stream ended before its sweep did."""
        if not self.is_finished:
            raise _broken(f"the stream ended at point {self._next_index}")

    def pause_seconds_after(self, error: UnavailableError) -> float:
        """How long to wait before the next attempt. Raises `error` once there were enough of them."""
        self._failure_count += 1
        has_begun = self._next_index > self._request.start_index
        if self._failure_count >= (ATTEMPT_COUNT if has_begun else FIRST_ATTEMPT_COUNT):
            raise error
        pause = min(math.ldexp(SHORTEST_PAUSE_SECONDS, self._failure_count - 1), LONGEST_PAUSE_SECONDS)
        remaining = self.remaining_seconds
        return pause if remaining is None else min(pause, remaining)


def swept(backend: Backend, request: SweepRequest, timeout_seconds: float | None) -> Iterator[SweepColumns]:
    """Every stretch of points of `request`, over as many streams as it takes."""
    progress = SweepProgress(request, timeout_seconds)
    while not progress.is_finished:
        try:
            with closing(backend.sweep(progress.request, progress.remaining_seconds)) as stretches:
                for columns in stretches:
                    yield progress.take(columns)
            progress.check_finished()
        except UnavailableError as error:
            time.sleep(progress.pause_seconds_after(error))


async def swept_async(
    backend: AsyncBackend, request: SweepRequest, timeout_seconds: float | None
) -> AsyncIterator[SweepColumns]:
    """Every stretch of points of `request`, over as many streams as it takes."""
    import asyncio

    progress = SweepProgress(request, timeout_seconds)
    while not progress.is_finished:
        try:
            async with aclosing(backend.sweep(progress.request, progress.remaining_seconds)) as stretches:
                async for columns in stretches:
                    yield progress.take(columns)
            progress.check_finished()
        except UnavailableError as error:
            await asyncio.sleep(progress.pause_seconds_after(error))


def _broken(what: str) -> UnavailableError:
    return UnavailableError(f"the sweep broke: {what}", reason="STREAM_ENDED")
