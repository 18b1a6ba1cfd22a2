"""Sample streams to the ingest service in this process."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from linkbound.client.sample_stream import BatchRefusal, SampleConnection, SampleEvent
from linkbound.convert.sample_payload import batch_of_payload
from linkbound.domain.errors import AbortedError, Error
from linkbound.domain.samples import (
    BatchOutcome,
    OpenStreamRequest,
    StreamStart,
    concerns_one_batch,
)

if TYPE_CHECKING:
    from ingest_service.service import Ingest, StreamSession


class LocalConnector:
    """Opens streams of an application object that someone else closes."""

    def __init__(self, application: Callable[[], Ingest]) -> None:
        self._application = application

    async def connect(self, request: OpenStreamRequest) -> SampleConnection:
        """Open a stream. A session that comes after the caller gave up is closed."""
        opening = _Opening(lambda: self._application().open_stream(request))
        try:
            return _Stream(await asyncio.to_thread(opening.open))
        except asyncio.CancelledError:
            opening.give_up()
            raise

    async def close(self) -> None:
        """Nothing: the application object is not of this connector."""


class _Opening:
    """A session that one thread opens and another may give up before it gets it."""

    def __init__(self, open_session: Callable[[], StreamSession]) -> None:
        self._open_session = open_session
        self._lock = threading.Lock()
        self._session: StreamSession | None = None
        self._is_given_up = False

    def open(self) -> StreamSession:
        """Open the session; close it again if nobody waits for it any more."""
        session = self._open_session()
        with self._lock:
            self._session = session
            if self._is_given_up:
                session.close()
        return session

    def give_up(self) -> None:
        """Nobody waits any more."""
        with self._lock:
            self._is_given_up = True
            if self._session is not None:
                self._session.close()


class _Stream:
    """One stream: what the session answers from its threads arrives on the event loop, in order."""

    def __init__(self, session: StreamSession) -> None:
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[SampleEvent | BaseException | None] = asyncio.Queue()
        session.listen(self)

    @property
    def start(self) -> StreamStart:
        """What the service said when the stream was opened."""
        return self._session.start

    async def send(self, sequence_number: int, payload: bytes) -> None:
        """Hand one batch over; a thread waits where that blocks."""

        def settle(future: Future[BatchOutcome]) -> None:
            self._put_from_any_thread(_event_of(sequence_number, future))

        try:
            future = await asyncio.to_thread(self._submit, sequence_number, payload)
        except Error as error:
            self._events.put_nowait(_event_of_error(sequence_number, error))
        else:
            future.add_done_callback(settle)

    def _submit(self, sequence_number: int, payload: bytes) -> Future[BatchOutcome]:
        return self._session.submit(batch_of_payload(sequence_number, payload))

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

    def on_checkpointed(self, sequence_number: int) -> None:
        """No damage to the log can take this number any more, nor any below it."""
        if sequence_number > self.start.checkpointed_sequence_number:
            outcome = BatchOutcome(
                committed_sequence_number=sequence_number, checkpointed_sequence_number=sequence_number
            )
            self._put_from_any_thread(outcome)

    def on_fenced(self, error: AbortedError) -> None:
        """The writer opened another stream, which ends this one with `error`."""
        self._put_from_any_thread(error)

    def _put_from_any_thread(self, event: SampleEvent | BaseException) -> None:
        # The loop is gone if the writer gave up before the store answered.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)


def _event_of(sequence_number: int, future: Future[BatchOutcome]) -> SampleEvent | BaseException:
    error = future.exception()
    if error is None:
        return future.result()
    return _event_of_error(sequence_number, error)


def _event_of_error(sequence_number: int, error: BaseException) -> SampleEvent | BaseException:
    if isinstance(error, Error) and concerns_one_batch(error):
        return BatchRefusal(sequence_number, error)
    return error
