"""Watches of runs that survive their server: the stream is opened again behind the last revision that came."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing

import attrs

from linkbound.client.backend import AsyncBackend, Backend
from linkbound.client.resuming import StreamProgress, resumed, resumed_async
from linkbound.domain.errors import UnavailableError
from linkbound.domain.run_watch import RunUpdate, WatchRunsRequest


class WatchProgress(StreamProgress[WatchRunsRequest, RunUpdate]):
    """Where a watch is, and whether and when it may be asked for again."""

    # Over a minute, in which a server is replaced.
    attempt_count = 40
    # A watch answers at once; one that has not answered has not begun.
    reasons_of_taken_streams = ()

    def __init__(self, request: WatchRunsRequest, timeout_seconds: float | None) -> None:
        super().__init__(timeout_seconds)
        self._request = request
        self._told_revision = 0

    @property
    def is_finished(self) -> bool:
        """Never: runs change until the caller leaves."""
        return False

    def next_request(self) -> WatchRunsRequest:
        """What is still to be told."""
        if self._told_revision == 0:
            return self._request
        return attrs.evolve(self._request, start_revision=self._told_revision + 1)

    def take(self, part: RunUpdate) -> RunUpdate:
        """`part`, which came."""
        self._told_revision = max(self._told_revision, part.revision)
        self._note_progress()
        return part

    def check_finished(self) -> None:
        """Raise UnavailableError: a stream ended."""
        raise UnavailableError("the watch ended, which it never does by itself", reason="STREAM_ENDED")

    def _too_late_message(self) -> str:
        return f"the watch is over; it is at revision {self._told_revision}"


def watched(backend: Backend, request: WatchRunsRequest, timeout_seconds: float | None) -> Iterator[RunUpdate]:
    """Everything that is told, over as many streams as it takes; the time begins with the first that is asked for."""
    yield from resumed(backend.watch_runs, WatchProgress(request, timeout_seconds))


async def watched_async(
    backend: AsyncBackend, request: WatchRunsRequest, timeout_seconds: float | None
) -> AsyncIterator[RunUpdate]:
    """Everything that is told, over as many streams as it takes; the time begins with the first that is asked for."""
    async with aclosing(resumed_async(backend.watch_runs, WatchProgress(request, timeout_seconds))) as updates:
        async for update in updates:
            yield update
