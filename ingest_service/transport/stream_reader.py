"""The reading half of a sample stream: takes batches as fast as the store has room for them."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc

from ingest_service.service import StreamSession
from ingest_service.transport.stream_answerer import Answerer, PendingBatch
from linkbound.convert import ingest_service as convert
from linkbound.domain.errors import Error, InvalidArgumentError, ResourceExhaustedError, UnavailableError, Violation
from linkbound.domain.samples import BatchOutcome, SampleBatch
from linkbound.ingest.v1 import ingest_service_pb2


class Reader:
    """Reads batches and submits them. `end` is the error that the call ends with; None after a half-close."""

    def __init__(
        self,
        context: grpc.aio.ServicerContext[Any, Any],
        session: StreamSession,
        answerer: Answerer,
        ending: asyncio.Future[UnavailableError],
    ) -> None:
        self._context = context
        self._session = session
        self._answerer = answerer
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
        """The batch under way; None where the stream ends before the store has room for it."""
        try:
            batch = self._checked(message)
        except InvalidArgumentError as error:
            outcome = await self._use_up(message.sequence_number, error)
            sample_count = 0
        else:
            outcome = await self._queued(batch)
            sample_count = batch.sample_count
        if outcome is None:
            return None
        outcome.add_done_callback(_retrieve)
        return PendingBatch(message.sequence_number, sample_count, outcome)

    def _checked(self, message: ingest_service_pb2.SampleBatch) -> SampleBatch:
        size_bytes, limit_bytes = message.ByteSize(), self._session.limits.max_batch_bytes
        if size_bytes > limit_bytes:
            raise refused("batch", f"{size_bytes} bytes are more than the {limit_bytes} that one batch may have")
        return convert.sample_batch_from_proto(message)

    async def _use_up(self, sequence_number: int, error: InvalidArgumentError) -> asyncio.Future[BatchOutcome] | None:
        """Store an empty batch under the number of a malformed one, so that its writer can go on; answer `error`."""
        try:
            empty = SampleBatch(sequence_number=sequence_number, columns=())
        except InvalidArgumentError:
            return _failed(error)
        outcome = await self._queued(empty)
        return None if outcome is None else asyncio.ensure_future(_fail_after(outcome, error))

    async def _queued(self, batch: SampleBatch) -> asyncio.Future[BatchOutcome] | None:
        while not self._ending.done():
            try:
                return asyncio.wrap_future(self._session.submit(batch))
            except ResourceExhaustedError as error:
                if error.retry_delay_seconds is None:
                    return _failed(error)
                await asyncio.wait({self._ending}, timeout=error.retry_delay_seconds)
            except Error as error:
                return _failed(error)
        return None


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


async def _fail_after(outcome: asyncio.Future[BatchOutcome], error: Error) -> BatchOutcome:
    await outcome
    raise error


def _failed(error: Error) -> asyncio.Future[BatchOutcome]:
    outcome: asyncio.Future[BatchOutcome] = asyncio.get_running_loop().create_future()
    outcome.set_exception(error)
    return outcome


def _retrieve(outcome: asyncio.Future[BatchOutcome]) -> None:
    # A stream that broke leaves outcomes unread; asyncio would report each as forgotten.
    if not outcome.cancelled():
        outcome.exception()
