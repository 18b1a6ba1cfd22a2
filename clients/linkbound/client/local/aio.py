"""The application objects of the servers, called from an event loop."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Generic, TypeVar

from linkbound.client.local.blocking import LocalBackend
from linkbound.client.operations import Operation
from linkbound.client.sample_stream import SampleConnector
from linkbound.domain.errors import DeadlineExceededError

if TYPE_CHECKING:
    from linkbound.domain.run_watch import RunUpdate, WatchRunsRequest
    from linkbound.domain.schedule import SchedulePart, ScheduleRequest
    from linkbound.domain.sql import SqlPart, SqlRequest
    from linkbound.domain.sweep import SweepColumns, SweepRequest

RequestT = TypeVar("RequestT")
ResultT = TypeVar("ResultT")
ApplicationT = TypeVar("ApplicationT")


class AsyncLocalBackend(Generic[ApplicationT]):
    """The same on an event loop: whatever may wait for the disk runs in a thread."""

    def __init__(self, backend: LocalBackend[ApplicationT]) -> None:
        self._backend = backend

    async def call(
        self, operation: Operation[RequestT, ResultT], request: RequestT, timeout_seconds: float | None
    ) -> ResultT:
        """The answer of the application object."""
        # A client starts without the services.
        from estimator_service.threads import in_thread

        return await in_thread(self._backend.call, operation, request, timeout_seconds)

    async def sweep(self, request: SweepRequest, timeout_seconds: float | None) -> AsyncGenerator[SweepColumns, None]:
        """What the estimator in this process computes, each stretch in a thread."""
        stretches = self._backend.sweep(request, timeout_seconds)
        while (columns := await asyncio.to_thread(next, stretches, None)) is not None:
            yield columns

    async def sql(self, request: SqlRequest, timeout_seconds: float | None) -> AsyncGenerator[SqlPart, None]:
        """What the store in this process answers, or its snapshot; a caller who goes away ends the query."""
        answer = await asyncio.to_thread(self._backend.sql_answer, request, timeout_seconds)
        try:
            yield await asyncio.to_thread(answer.begin)
            while (batch := await asyncio.to_thread(answer.next_batch)) is not None:
                yield batch
            if answer.summary is not None:
                yield answer.summary
        finally:
            answer.cancel()
            await asyncio.shield(asyncio.to_thread(answer.close))

    async def watch_runs(
        self, request: WatchRunsRequest, timeout_seconds: float | None
    ) -> AsyncGenerator[RunUpdate, None]:
        """What the store in this process tells of its runs."""
        from ingest_service.loop_signal import LoopSignal
        from ingest_service.store.run_watch import PROGRESS_INTERVAL_SECONDS

        loop, changed = asyncio.get_running_loop(), LoopSignal()
        give_up_time = math.inf if timeout_seconds is None else loop.time() + timeout_seconds
        watch = await asyncio.to_thread(self._backend.run_watch, request)
        with watch.listening(changed.set):
            while True:
                changed.clear()
                updates = await asyncio.to_thread(watch.next_updates)
                for update in updates:
                    yield update
                remaining_seconds = give_up_time - loop.time()
                if remaining_seconds <= 0:
                    raise DeadlineExceededError(f"watch_runs: over after {timeout_seconds:g} s")
                limit_seconds = min(PROGRESS_INTERVAL_SECONDS, remaining_seconds)
                if not updates and not await changed.is_set_within(limit_seconds):
                    yield watch.progress

    async def schedule(
        self, request: ScheduleRequest, timeout_seconds: float | None
    ) -> AsyncGenerator[SchedulePart, None]:
        """What the estimator in this process replays, each part in a thread."""
        from estimator_service.threads import in_thread

        parts = self._backend.schedule(request, timeout_seconds)
        while (part := await in_thread(next, parts, None)) is not None:
            yield part

    async def wait_until_ready(self, timeout_seconds: float | None) -> None:
        """Open the application object; it is ready then."""
        await asyncio.to_thread(self._backend.wait_until_ready, timeout_seconds)

    def sample_connector(self) -> SampleConnector:
        """What opens streams of the ingest service in this process."""
        return self._backend.sample_connector()

    async def close(self) -> None:
        """Close what was opened."""
        await asyncio.to_thread(self._backend.close)
