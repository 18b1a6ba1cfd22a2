"""The reading half of a sample stream: takes batches as fast as the store has room for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

import grpc
from attrs import frozen
from google.protobuf.unknown_fields import UnknownFieldSet

from ingest_service.service import RefusedBatch, StreamSession
from ingest_service.transport.store_threads import StoreThreads
from ingest_service.transport.stream_answerer import Answerer, PendingBatch
from linkbound.convert import ingest_service as convert
from linkbound.domain.errors import Error, InvalidArgumentError, ResourceExhaustedError, UnavailableError, Violation
from linkbound.domain.samples import BatchOutcome, SampleBatch
from linkbound.ingest.v1 import ingest_service_pb2


@frozen
class _PreparedBatch:
    """A batch on its way to the store; `submit` may be called again where the store had no room."""

    sample_count: int
    submit: Callable[[], Future[BatchOutcome]]


class Reader:
    """Reads batches and submits them. `end` is the error that the call ends with; None after a half-close."""

    def __init__(
        self,
        context: grpc.aio.ServicerContext[Any, Any],
        session: StreamSession,
        answerer: Answerer,
        threads: StoreThreads,
        ending: asyncio.Future[UnavailableError],
    ) -> None:
        self._context = context
        self._session = session
        self._answerer = answerer
        self._threads = threads
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
        message = await next_message(self._context, self._ending)
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
        prepared = await self._threads.convert(size_bytes, partial(self._prepared, message, size_bytes))
        while not self._ending.done():
            try:
                outcome = asyncio.wrap_future(await self._threads.convert(size_bytes, prepared.submit))
            except ResourceExhaustedError as error:
                if error.retry_delay_seconds is not None:
                    await asyncio.wait({self._ending}, timeout=error.retry_delay_seconds)
                    continue
                outcome = _failed(error)
            except Error as error:
                outcome = _failed(error)
            outcome.add_done_callback(_retrieve)
            return PendingBatch(message.sequence_number, prepared.sample_count, outcome)
        return None

    def _prepared(self, message: ingest_service_pb2.SampleBatch, size_bytes: int) -> _PreparedBatch:
        """The batch of `message`, or its refusal where it has none that could be stored."""
        try:
            batch = self._converted(message, size_bytes)
        except InvalidArgumentError as error:
            return _PreparedBatch(0, partial(self._refuse, message, error))
        return _PreparedBatch(batch.sample_count, partial(self._session.submit, batch))

    def _converted(self, message: ingest_service_pb2.SampleBatch, size_bytes: int) -> SampleBatch:
        limit_bytes = self._session.limits.max_batch_bytes
        if size_bytes > limit_bytes:
            raise refused("batch", f"{size_bytes} bytes are more than the {limit_bytes} that one batch may have")
        if message.WhichOneof("content") is None and len(UnknownFieldSet(message)):
            raise refused("batch.content", "is of an encoding that this version does not know")
        return convert.sample_batch_from_proto(message)

    def _refuse(self, message: ingest_service_pb2.SampleBatch, error: InvalidArgumentError) -> Future[BatchOutcome]:
        refused_batch = RefusedBatch(
            sequence_number=message.sequence_number,
            sample_count=sum(max(len(c.time_ns_deltas), len(c.value_deltas)) for c in message.column_set.columns),
            content=message.SerializeToString(deterministic=True),
            error=error,
        )
        return self._session.refuse(refused_batch)


async def next_message(
    context: grpc.aio.ServicerContext[Any, Any], ending: asyncio.Future[UnavailableError]
) -> ingest_service_pb2.StreamSamplesRequest | None:
    """The next message; None once the client has half-closed or the stream is to end."""
    reading = asyncio.ensure_future(context.read())
    try:
        await asyncio.wait({reading, ending}, return_when=asyncio.FIRST_COMPLETED)
        message = reading.result() if reading.done() else grpc.aio.EOF
    finally:
        reading.cancel()
    return message if isinstance(message, ingest_service_pb2.StreamSamplesRequest) else None


def refused(field: str, description: str) -> InvalidArgumentError:
    """The error of a stream that breaks the rule of its `field`."""
    return InvalidArgumentError([Violation(field, description)])


def _failed(error: Error) -> asyncio.Future[BatchOutcome]:
    outcome: asyncio.Future[BatchOutcome] = asyncio.get_running_loop().create_future()
    outcome.set_exception(error)
    return outcome


def _retrieve(outcome: asyncio.Future[BatchOutcome]) -> None:
    # A stream that broke leaves outcomes unread; asyncio would report each as forgotten.
    if not outcome.cancelled():
        outcome.exception()
