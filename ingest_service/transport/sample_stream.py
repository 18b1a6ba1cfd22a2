"""One `StreamSamples` call: reads batches, hands them to the store, acknowledges what is durable.

Two halves share the stream. The reader, a task of its own, takes a batch only while fewer than the advertised number
are under way, so a slow store makes the client wait, by the flow control of HTTP/2. The answerer answers in the order
of the batches: one acknowledgement for all that became durable together, and one at least every second while any is
under way.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing, suppress
from typing import Any

import grpc
from attrs import frozen

from ingest_service.service import StreamSession
from ingest_service.transport.store_threads import StoreThreads
from ingest_service.transport.stream_answerer import Answerer
from ingest_service.transport.stream_reader import Ending, Messages, Reader, refused
from linkbound.convert import ingest_service as convert
from linkbound.domain.errors import AbortedError, Error, UnavailableError
from linkbound.domain.samples import OpenStreamRequest
from linkbound.ingest.v1 import ingest_service_pb2

ACK_INTERVAL_SECONDS = 1.0
OPEN_LIMIT_SECONDS = 30.0
"""How long a call may take to say what it is: it counts as an open stream all the while."""
LIFETIME_SECONDS = 1800.0
"""After half an hour a client opens its stream again, and may then reach another process."""
LIFETIME_JITTER_FRACTION = 0.1
"""Streams that began together do not end together."""

OpenSession = Callable[[OpenStreamRequest], Awaitable[StreamSession]]


@frozen(kw_only=True)
class StreamTiming:
    """The times of one stream."""

    ack_interval_seconds: float = ACK_INTERVAL_SECONDS
    lifetime_seconds: float = LIFETIME_SECONDS
    open_limit_seconds: float = OPEN_LIMIT_SECONDS

    @classmethod
    def drawn(cls) -> StreamTiming:
        """The usual times, with a lifetime drawn around the usual one."""
        jitter = random.uniform(-LIFETIME_JITTER_FRACTION, LIFETIME_JITTER_FRACTION)
        return cls(lifetime_seconds=LIFETIME_SECONDS * (1 + jitter))


class SampleStream:
    """Serves one call until the client half-closes, `draining` is set, it is too old or its writer opens another.

    Whatever was read is committed and acknowledged before the call ends so, and not where another error ends it.
    """

    def __init__(
        self,
        context: grpc.aio.ServicerContext[Any, Any],
        open_session: OpenSession,
        threads: StoreThreads,
        draining: asyncio.Event,
        timing: StreamTiming,
    ) -> None:
        self._context = context
        self._open_session = open_session
        self._threads = threads
        self._draining = draining
        self._timing = timing

    async def responses(self) -> AsyncIterator[ingest_service_pb2.StreamSamplesResponse]:
        """What the call answers. Raises the error that it ends with."""
        ending: Ending = asyncio.get_running_loop().create_future()
        watching = asyncio.ensure_future(self._end_in_time(ending))
        try:
            with closing(await self._open(ending)) as session:
                yield _opened(session)
                answerer = Answerer(session.start, self._timing.ack_interval_seconds)
                session.listen(_Listener(answerer, ending))
                reader = Reader(self._context, session, answerer, self._threads, ending)
                reading = asyncio.ensure_future(reader.run())
                try:
                    async for response in answerer.responses():
                        yield response
                    await reading
                finally:
                    reading.cancel()
                    await asyncio.gather(reading, return_exceptions=True)
                if reader.end is not None:
                    raise reader.end
        finally:
            watching.cancel()

    async def _open(self, ending: Ending) -> StreamSession:
        try:
            async with asyncio.timeout(self._timing.open_limit_seconds):
                first = await Messages(self._context, ending).next()
        except TimeoutError:
            raise refused("open", f"did not come within {self._timing.open_limit_seconds:g} s") from None
        if first is None and ending.done():
            raise ending.result()
        if first is None or first.WhichOneof("message") != "open":
            raise refused("open", "is missing; the first message opens the stream")
        return await self._open_session(convert.open_stream_request_from_proto(first.open))

    async def _end_in_time(self, ending: Ending) -> None:
        error = UnavailableError("the service is shutting down", reason="SHUTTING_DOWN")
        try:
            async with asyncio.timeout(self._timing.lifetime_seconds):
                await self._draining.wait()
        except TimeoutError:
            error = UnavailableError("the stream reached its age limit; open it again", reason="STREAM_RECYCLED")
        _end(ending, error)


class _Listener:
    """Brings what happens to a stream from the threads of the store to its event loop."""

    def __init__(self, answerer: Answerer, ending: Ending) -> None:
        self._answerer = answerer
        self._ending = ending
        self._loop = asyncio.get_running_loop()

    def on_checkpointed(self, sequence_number: int) -> None:
        """A checkpoint holds more."""
        self._answerer.note_checkpointed(sequence_number)

    def on_fenced(self, error: AbortedError) -> None:
        """The writer opened another stream."""
        # The loop is gone if the server ended at the same moment.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(_end, self._ending, error)


def _opened(session: StreamSession) -> ingest_service_pb2.StreamSamplesResponse:
    return ingest_service_pb2.StreamSamplesResponse(opened=convert.stream_start_to_proto(session.start))


def _end(ending: Ending, error: Error) -> None:
    """The stream is to end with `error`; the first one counts."""
    if not ending.done():
        ending.set_result(error)
