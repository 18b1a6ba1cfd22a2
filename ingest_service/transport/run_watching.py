"""One `WatchRuns` call: tells of runs as they change, until the caller or the service ends it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager

from ingest_service.loop_signal import LoopSignal
from ingest_service.service import Ingest
from ingest_service.store.run_watch import PROGRESS_INTERVAL_SECONDS
from ingest_service.transport.store_threads import StoreThreads
from linkbound.domain.errors import UnavailableError
from linkbound.domain.run_watch import RunUpdate, WatchRunsRequest


async def run_updates(
    ingest: Ingest,
    threads: StoreThreads,
    draining: asyncio.Event,
    request: WatchRunsRequest,
    progress_interval_seconds: float = PROGRESS_INTERVAL_SECONDS,
) -> AsyncGenerator[RunUpdate, None]:
    """What the watch tells.

    Raises OutOfRangeError (REVISION_COMPACTED), and UnavailableError (SHUTTING_DOWN) once `draining` is set.
    """
    changed = LoopSignal()
    watch = ingest.watch_runs(request)
    with watch.listening(changed.set), _set_at_the_end(changed, draining):
        while not draining.is_set():
            changed.clear()
            updates = await threads.reads.run(watch.next_updates)
            for update in updates:
                yield update
            if not updates and not draining.is_set() and not await changed.is_set_within(progress_interval_seconds):
                yield watch.progress
    raise UnavailableError("the service is shutting down; ask again from the last revision", reason="SHUTTING_DOWN")


@contextmanager
def _set_at_the_end(signal: LoopSignal, draining: asyncio.Event) -> Iterator[None]:
    """Sets `signal` too once `draining` is set."""

    async def wait() -> None:
        await draining.wait()
        signal.set()

    waiting = asyncio.ensure_future(wait())
    try:
        yield
    finally:
        waiting.cancel()
