"""Watches of runs that survive their server: the stream is opened again behind the last revision that came.

Pure but for the clock: one class keeps where a watch is, and the two APIs only differ in how they wait.
"""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, closing

import attrs

from linkbound.client.backend import AsyncBackend, Backend
from linkbound.domain.errors import DeadlineExceededError, UnavailableError
from linkbound.domain.run_watch import RunUpdate, WatchRunsRequest

FIRST_ATTEMPT_COUNT = 5
"""Attempts before anything has come; as many as gRPC makes of a unary call."""
ATTEMPT_COUNT = 40
"""Attempts without any answer once something has come: over a minute, in which a server is replaced."""
SHORTEST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 2.0
LONGEST_DOUBLING_COUNT = 10
"""Failures after which the pause has long been the longest."""


class WatchProgress:
    """Where a watch is, and whether and when it may be asked for again."""

    def __init__(self, request: WatchRunsRequest, timeout_seconds: float | None) -> None:
        self._request = request
        self._give_up_time = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        self._told_revision = 0
        self._has_begun = False
        self._failure_count = 0

    @property
    def request(self) -> WatchRunsRequest:
        """What is still to be told."""
        if self._told_revision == 0:
            return self._request
        return attrs.evolve(self._request, start_revision=self._told_revision + 1)

    @property
    def remaining_seconds(self) -> float | None:
        """Time until the caller gives up; None: never. Raises DeadlineExceededError once that is past."""
        if self._give_up_time is None:
            return None
        remaining = self._give_up_time - time.monotonic()
        if remaining <= 0:
            raise DeadlineExceededError(f"the watch is over; it is at revision {self._told_revision}")
        return remaining

    def take(self, update: RunUpdate) -> RunUpdate:
        """`update`, which came."""
        self._told_revision = max(self._told_revision, update.revision)
        self._has_begun = True
        self._failure_count = 0
        return update

    def pause_seconds_after(self, error: UnavailableError) -> float:
        """How long to wait before the next attempt. Raises `error` once there were enough of them."""
        self._failure_count += 1
        if self._failure_count >= (ATTEMPT_COUNT if self._has_begun else FIRST_ATTEMPT_COUNT):
            raise error
        doublings = min(self._failure_count - 1, LONGEST_DOUBLING_COUNT)
        pause = min(math.ldexp(SHORTEST_PAUSE_SECONDS, doublings), LONGEST_PAUSE_SECONDS)
        remaining = self.remaining_seconds
        return pause if remaining is None else min(pause, remaining)


def watched(backend: Backend, request: WatchRunsRequest, timeout_seconds: float | None) -> Iterator[RunUpdate]:
    """Everything that is told, over as many streams as it takes."""
    progress = WatchProgress(request, timeout_seconds)
    while True:
        try:
            with closing(backend.watch_runs(progress.request, progress.remaining_seconds)) as updates:
                for update in updates:
                    yield progress.take(update)
            raise _ended()
        except UnavailableError as error:
            time.sleep(progress.pause_seconds_after(error))


async def watched_async(
    backend: AsyncBackend, request: WatchRunsRequest, timeout_seconds: float | None
) -> AsyncIterator[RunUpdate]:
    """Everything that is told, over as many streams as it takes."""
    import asyncio

    progress = WatchProgress(request, timeout_seconds)
    while True:
        try:
            async with aclosing(backend.watch_runs(progress.request, progress.remaining_seconds)) as updates:
                async for update in updates:
                    yield progress.take(update)
            raise _ended()
        except UnavailableError as error:
            await asyncio.sleep(progress.pause_seconds_after(error))


def _ended() -> UnavailableError:
    return UnavailableError("the watch ended, which it never does by itself", reason="STREAM_ENDED")
