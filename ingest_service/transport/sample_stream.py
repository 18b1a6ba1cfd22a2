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
from contextlib import closing
from typing import Any

import grpc
from attrs import frozen

from ingest_service.service import StreamSession
from ingest_service.transport.store_threads import StoreThreads
from ingest_service.transport.stream_answerer import Answerer
from ingest_service.transport.stream_reader import Reader, next_message, refused
from linkbound.convert import ingest_service as convert
from linkbound.domain.errors import UnavailableError
from linkbound.domain.samples import OpenStreamRequest
from linkbound.ingest.v1 import ingest_service_pb2

ACK_INTERVAL_SECONDS = 1.0
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

    @classmethod
    def drawn(cls) -> StreamTiming:
        """The usual times, with a lifetime drawn around the usual one."""
        jitter = random.uniform(-LIFETIME_JITTER_FRACTION, LIFETIME_JITTER_FRACTION)
        return cls(lifetime_seconds=LIFETIME_SECONDS * (1 + jitter))


class SampleStream:
    """Serves one call until the client half-closes, `draining` is set or the stream is too old.

    Whatever was read is committed and acknowledged before the call ends so, and not where an error ends it.
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
        ending = asyncio.ensure_future(_end_of_stream(self._draining, self._timing.lifetime_seconds))
        try:
            with closing(await self._open(ending)) as session:
                yield _opened(session)
                answerer = Answerer(session, self._timing.ack_interval_seconds)
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
            ending.cancel()

    async def _open(self, ending: asyncio.Future[UnavailableError]) -> StreamSession:
        first = await next_message(self._context, ending)
        if first is None and ending.done():
            raise ending.result()
        if first is None or first.WhichOneof("message") != "open":
            raise refused("open", "is missing; the first message opens the stream")
        return await self._open_session(convert.open_stream_request_from_proto(first.open))


def _opened(session: StreamSession) -> ingest_service_pb2.StreamSamplesResponse:
    opened = convert.stream_opened_to_proto(session.committed_sequence_number, session.limits)
    return ingest_service_pb2.StreamSamplesResponse(opened=opened)


async def _end_of_stream(draining: asyncio.Event, lifetime_seconds: float) -> UnavailableError:
    try:
        async with asyncio.timeout(lifetime_seconds):
            await draining.wait()
    except TimeoutError:
        return UnavailableError("the stream reached its age limit; open it again", reason="STREAM_RECYCLED")
    return UnavailableError("the service is shutting down", reason="SHUTTING_DOWN")
