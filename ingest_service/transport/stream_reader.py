"""The reading half of a sample stream: takes batches as fast as the store has room for them."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from functools import partial
from typing import Any

import grpc
from google.protobuf.unknown_fields import UnknownFieldSet

from ingest_service.core.arrow_batches import ArrowBatches
from ingest_service.core.numpy_reading import plain, running_sums
from ingest_service.service import PreparedAppend, RefusedBatch, StreamSession
from ingest_service.transport.store_threads import StoreThreads
from ingest_service.transport.stream_answerer import Answerer, PendingBatch
from linkbound.convert import ingest_service as convert
from linkbound.convert.samples import BatchReading
from linkbound.domain.errors import Error, InvalidArgumentError, ResourceExhaustedError, Violation
from linkbound.domain.samples import BatchOutcome, SampleBatch
from linkbound.ingest.v1 import ingest_service_pb2

CROWD_PATIENCE_SECONDS = 1.0
"""Time after which a stream reads on although others fill the queue."""

Ending = asyncio.Future[Error]
"""Resolves with what the stream ends with, once it is to end."""


class Reader:
    """Reads batches and submits them. `end` is the error that the call ends with; None after a half-close."""

    def __init__(
        self,
        context: grpc.aio.ServicerContext[Any, Any],
        session: StreamSession,
        answerer: Answerer,
        threads: StoreThreads,
        ending: Ending,
    ) -> None:
        self._messages = Messages(context, ending)
        self._session = session
        self._answerer = answerer
        self._threads = threads
        self._reading = BatchReading(plain=plain, running_sums=running_sums, arrow=ArrowBatches().columns)
        self._ending = ending
        self.end: Error | None = None

    async def run(self) -> None:
        """Read until the client half-closes, the stream is to end, or a message is not a batch."""
        try:
            while await self._take_one():
                pass
        finally:
            self._answerer.finish()

    async def _take_one(self) -> bool:
        await self._answerer.slot()
        if self._session.is_crowded:
            # What is not read stays with the client: a crowd of streams takes no memory while it waits.
            await self._wait_for(self._session.when_room(), CROWD_PATIENCE_SECONDS)
        message = await self._messages.next()
        if message is None:
            self.end = self._ending.result() if self._ending.done() else None
            return False
        if message.WhichOneof("message") != "batch":
            self.end = refused("batch", "is missing; every message after the first is a batch")
            return False
        pending = await self._submit(message.batch)
        if pending is None:
            self.end = self._ending.result()
            return False
        self._answerer.add(pending)
        return True

    async def _submit(self, message: ingest_service_pb2.SampleBatch) -> PendingBatch | None:
        """The batch under way; None where the stream ends before the store has room for it.

        One batch at a time, so that batches come to the store in their order whichever thread works on them.
        """
        size_bytes = message.ByteSize()
        try:
            prepared = await self._threads.convert_batch(size_bytes, partial(self._prepared, message, size_bytes))
        except Error as error:
            return PendingBatch(message.sequence_number, 0, _failed(error))
        room: Future[None] | None = None
        while not self._ending.done():
            try:
                outcome = self._session.queue(prepared)
            except ResourceExhaustedError as error:
                if error.retry_delay_seconds is not None:
                    if room is None:
                        # Asked for before the next look at the queue, so that none is missed.
                        room = self._session.when_room()
                    else:
                        await self._wait_for(room, error.retry_delay_seconds)
                        room = None
                    continue
                outcome = _failed(error)
            except Error as error:
                outcome = _failed(error)
            return PendingBatch(message.sequence_number, prepared.sample_count, outcome)
        return None

    async def _wait_for(self, room: Future[None], limit_seconds: float) -> None:
        """Returns once there may be room, or the stream is to end. Others may take the room first."""
        either: set[asyncio.Future[Any]] = {self._ending, asyncio.wrap_future(room)}
        await asyncio.wait(either, timeout=limit_seconds, return_when=asyncio.FIRST_COMPLETED)

    def _prepared(self, message: ingest_service_pb2.SampleBatch, size_bytes: int) -> PreparedAppend:
        """The batch of `message`, or its refusal where it has none that could be stored."""
        try:
            return self._session.prepared(self._converted(message, size_bytes))
        except InvalidArgumentError as error:
            return self._session.refused(_refusal(message, error))

    def _converted(self, message: ingest_service_pb2.SampleBatch, size_bytes: int) -> SampleBatch:
        limit_bytes = self._session.start.limits.max_batch_bytes
        if size_bytes > limit_bytes:
            raise refused("batch", f"{size_bytes} bytes are more than the {limit_bytes} that one batch may have")
        if message.WhichOneof("content") is None and len(UnknownFieldSet(message)):
            raise refused("batch.content", "is of an encoding that this version does not know")
        return convert.sample_batch_from_proto(message, self._reading)


class Messages:
    """The messages of a call, until the client has half-closed or the stream is to end."""

    def __init__(self, context: grpc.aio.ServicerContext[Any, Any], ending: Ending) -> None:
        self._context = context
        self._ending = ending
        self._reader: asyncio.Task[Any] | None = None
        ending.add_done_callback(self._stop_reading)

    async def next(self) -> ingest_service_pb2.StreamSamplesRequest | None:
        """The next message; None where none comes any more."""
        if self._ending.done():
            return None
        self._reader = asyncio.current_task()
        try:
            message = await self._context.read()
        except asyncio.CancelledError:
            # Nothing else ends a read. What others cancel stays cancelled.
            if not self._ending.done() or self._reader is None or self._reader.uncancel() > 0:
                raise
            return None
        finally:
            self._reader = None
        return message if isinstance(message, ingest_service_pb2.StreamSamplesRequest) else None

    def _stop_reading(self, _ending: Ending) -> None:
        if self._reader is not None:
            self._reader.cancel()


def _refusal(message: ingest_service_pb2.SampleBatch, error: InvalidArgumentError) -> RefusedBatch:
    return RefusedBatch(
        sequence_number=message.sequence_number,
        sample_count=sum(max(len(c.time_ns_deltas), len(c.value_deltas)) for c in message.column_set.columns),
        content=message.SerializeToString(deterministic=True),
        error=error,
    )


def refused(field: str, description: str) -> InvalidArgumentError:
    """The error of a stream that breaks the rule of its `field`."""
    return InvalidArgumentError([Violation(field, description)])


def _failed(error: Error) -> Future[BatchOutcome]:
    outcome: Future[BatchOutcome] = Future()
    outcome.set_exception(error)
    return outcome
