"""Sample streams to the ingest service in this process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from linkbound.client.sample_stream import BatchRefusal, SampleConnection, SampleEvent
from linkbound.domain.errors import (
    AbortedError,
    Error,
    InvalidArgumentError,
    OutOfRangeError,
    ResourceExhaustedError,
    UnavailableError,
)
from linkbound.domain.samples import BatchOutcome, OpenStreamRequest, SampleBatch, StreamLimits

if TYPE_CHECKING:
    from ingest_service.service import Ingest, StreamSession

_REFUSALS = (InvalidArgumentError, OutOfRangeError, AbortedError, ResourceExhaustedError)
"""What concerns one batch; every other error ends the stream, as it does over the network."""


class LocalConnector:
    """Opens streams of an application object that someone else closes."""

    def __init__(self, application: Callable[[], Ingest]) -> None:
        self._application = application

    async def connect(self, request: OpenStreamRequest) -> SampleConnection:
        """Open a stream."""
        session = await asyncio.to_thread(lambda: self._application().open_stream(request))
        return _Stream(session)

    async def close(self) -> None:
        """Nothing: the application object is not of this connector."""


class _Stream:
    """One stream: what the session answers from its threads arrives on the event loop, in order."""

    def __init__(self, session: StreamSession) -> None:
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[SampleEvent | BaseException | None] = asyncio.Queue()

    @property
    def committed_sequence_number(self) -> int:
        """Highest number that was stored when the stream was opened."""
        return self._session.committed_sequence_number

    @property
    def limits(self) -> StreamLimits:
        """What may be under way."""
        return self._session.limits

    async def send(self, batch: SampleBatch) -> None:
        """Hand one batch over; a thread waits where that blocks."""

        def settle(future: Future[BatchOutcome]) -> None:
            # The loop is gone if the writer gave up before the store answered.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._events.put_nowait, _event_of(batch, future))

        try:
            future = await asyncio.to_thread(self._session.submit, batch)
        except Error as error:
            self._events.put_nowait(_event_of_error(batch, error))
        else:
            future.add_done_callback(settle)

    async def receive(self) -> SampleEvent | None:
        """The next answer; raises what ended the stream."""
        event = await self._events.get()
        if isinstance(event, BaseException):
            raise event
        return event

    async def finish(self) -> None:
        """Every answer has arrived: a writer finishes once everything is stored."""
        self._events.put_nowait(None)

    async def close(self) -> None:
        """Close the session."""
        await asyncio.to_thread(self._session.close)


def _event_of(batch: SampleBatch, future: Future[BatchOutcome]) -> SampleEvent | BaseException:
    if future.cancelled():
        return UnavailableError("the stream was closed before the batch was stored", reason="STREAM_ENDED")
    error = future.exception()
    if error is None:
        return future.result()
    return _event_of_error(batch, error)


def _event_of_error(batch: SampleBatch, error: BaseException) -> SampleEvent | BaseException:
    return BatchRefusal(batch.sequence_number, error) if isinstance(error, _REFUSALS) else error
