"""The application objects of the servers, called from an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Generic, TypeVar

from linkbound.client.local.blocking import LocalBackend
from linkbound.client.operations import Operation
from linkbound.client.sample_stream import SampleConnector

if TYPE_CHECKING:
    from linkbound.domain.schedule import SchedulePart, ScheduleRequest
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
