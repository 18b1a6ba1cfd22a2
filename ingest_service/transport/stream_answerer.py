"""The answering half of a sample stream: acknowledgements of what is durable, and refusals of single batches."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator

from attrs import frozen

from ingest_service.service import StreamSession
from ingest_service.transport.names import ERROR_DOMAIN
from linkbound.convert import ingest_service as convert
from linkbound.domain.errors import Error, InvalidArgumentError
from linkbound.domain.samples import BatchOutcome, concerns_one_batch
from linkbound.ingest.v1 import ingest_service_pb2
from serving.errors import status_proto
from serving.rpc import CURRENT_RPC


@frozen
class PendingBatch:
    """A batch that is under way; `outcome` resolves when it is durable, or raises why it is not."""

    sequence_number: int
    sample_count: int
    outcome: asyncio.Future[BatchOutcome]


class Answerer:
    """Answers batches in the order in which they came."""

    def __init__(self, session: StreamSession, ack_interval_seconds: float) -> None:
        self._ack_interval_seconds = ack_interval_seconds
        self._committed_sequence_number = session.committed_sequence_number
        self._slots = asyncio.Semaphore(session.limits.max_in_flight_batches)
        self._pending: deque[PendingBatch] = deque()
        self._changed = asyncio.Event()
        self._finished = False
        self._rejected_sample_count = 0
        self._rejection_message = ""

    async def slot(self) -> None:
        """Wait until one more batch may be under way."""
        await self._slots.acquire()

    def add(self, pending: PendingBatch) -> None:
        """Take over a batch, for which a slot was taken."""
        self._pending.append(pending)
        self._changed.set()

    def finish(self) -> None:
        """No further batch comes."""
        self._finished = True
        self._changed.set()

    async def responses(self) -> AsyncIterator[ingest_service_pb2.StreamSamplesResponse]:
        """Answers until the last batch is answered; the last one acknowledges everything durable."""
        while await self._has_more():
            done, _ = await asyncio.wait({self._pending[0].outcome}, timeout=self._ack_interval_seconds)
            for response in self._answers_to_done() if done else (self._acknowledgement(),):
                yield response
        yield self._acknowledgement()

    async def _has_more(self) -> bool:
        while not self._pending and not self._finished:
            self._changed.clear()
            await self._changed.wait()
        return bool(self._pending)

    def _answers_to_done(self) -> Iterator[ingest_service_pb2.StreamSamplesResponse]:
        durable_count = 0
        while self._pending and self._pending[0].outcome.done():
            pending = self._pending.popleft()
            self._slots.release()
            try:
                outcome = pending.outcome.result()
            except Error as error:
                if durable_count:
                    yield self._acknowledgement()
                durable_count = 0
                yield self._refusal(pending.sequence_number, error)
            else:
                durable_count += 1
                self._count(pending, outcome)
        if durable_count:
            yield self._acknowledgement()

    def _count(self, pending: PendingBatch, outcome: BatchOutcome) -> None:
        self._committed_sequence_number = max(self._committed_sequence_number, outcome.committed_sequence_number)
        self._rejected_sample_count += outcome.rejected_sample_count
        self._rejection_message = outcome.rejection_message or self._rejection_message
        CURRENT_RPC.get().add_rows(pending.sample_count - outcome.rejected_sample_count)

    def _acknowledgement(self) -> ingest_service_pb2.StreamSamplesResponse:
        outcome = BatchOutcome(
            committed_sequence_number=self._committed_sequence_number,
            rejected_sample_count=self._rejected_sample_count,
            rejection_message=self._rejection_message,
        )
        self._rejected_sample_count, self._rejection_message = 0, ""
        return ingest_service_pb2.StreamSamplesResponse(ack=convert.batch_outcome_to_proto(outcome))

    def _refusal(self, sequence_number: int, error: Error) -> ingest_service_pb2.StreamSamplesResponse:
        if not concerns_one_batch(error):
            raise error
        if isinstance(error, InvalidArgumentError) and sequence_number == self._committed_sequence_number + 1:
            # Its number is used up.
            self._committed_sequence_number = sequence_number
        refusal = ingest_service_pb2.BatchError(
            sequence_number=sequence_number, status=status_proto(error, ERROR_DOMAIN)
        )
        return ingest_service_pb2.StreamSamplesResponse(error=refusal)
