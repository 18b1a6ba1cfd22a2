"""The answering half of a sample stream: acknowledgements of what is durable, and refusals of single batches."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future

from attrs import frozen

from ingest_service.transport.names import ERROR_DOMAIN
from linkbound.convert import ingest_service as convert
from linkbound.domain.errors import Error, InvalidArgumentError
from linkbound.domain.samples import BatchOutcome, StreamStart, concerns_one_batch
from linkbound.ingest.v1 import ingest_service_pb2
from serving.errors import status_proto
from serving.rpc import CURRENT_RPC


@frozen
class PendingBatch:
    """A batch that is under way; `outcome` resolves when it is durable, or raises why it is not."""

    sequence_number: int
    sample_count: int
    outcome: Future[BatchOutcome]


class Answerer:
    """Answers batches in the order in which they came."""

    def __init__(self, start: StreamStart, ack_interval_seconds: float) -> None:
        self._ack_interval_seconds = ack_interval_seconds
        self._committed_sequence_number = start.committed_sequence_number
        self._checkpointed_sequence_number = start.checkpointed_sequence_number
        self._told_checkpointed = start.checkpointed_sequence_number
        self._slots = asyncio.Semaphore(start.limits.max_in_flight_batches)
        self._pending: deque[PendingBatch] = deque()
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._is_waking = False
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
        pending.outcome.add_done_callback(lambda _: self._wake())

    def finish(self) -> None:
        """No further batch comes."""
        self._finished = True
        self._changed.set()

    def note_checkpointed(self, sequence_number: int) -> None:
        """Everything up to this number is out of reach of damage to the log. From any thread."""
        self._checkpointed_sequence_number = max(self._checkpointed_sequence_number, sequence_number)
        self._wake()

    async def responses(self) -> AsyncIterator[ingest_service_pb2.StreamSamplesResponse]:
        """Answers until the last batch is answered; the last one acknowledges everything durable."""
        while self._pending or not self._finished:
            self._changed.clear()
            has_answered = False
            for response in self._news():
                has_answered = True
                yield response
            if not (has_answered or (self._finished and not self._pending)) and not await self._has_changed():
                yield self._acknowledgement()
        yield self._acknowledgement()

    async def _has_changed(self) -> bool:
        """Waits for something to happen; False where it is time for an acknowledgement without anything."""
        try:
            async with asyncio.timeout(self._ack_interval_seconds if self._pending else None):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def _news(self) -> Iterator[ingest_service_pb2.StreamSamplesResponse]:
        yield from self._answers_to_done()
        if self._checkpointed > self._told_checkpointed:
            yield self._acknowledgement()

    def _wake(self) -> None:
        # Many batches become durable at once: one wake-up is enough for all that are done when it comes.
        if not self._is_waking:
            self._is_waking = True
            # The loop is gone if the server ended before the store answered.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._woken)

    def _woken(self) -> None:
        self._is_waking = False
        self._changed.set()

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
        self._checkpointed_sequence_number = max(
            self._checkpointed_sequence_number, outcome.checkpointed_sequence_number
        )
        self._rejected_sample_count += outcome.rejected_sample_count
        self._rejection_message = outcome.rejection_message or self._rejection_message
        CURRENT_RPC.get().add_rows(pending.sample_count - outcome.rejected_sample_count)

    @property
    def _checkpointed(self) -> int:
        """What an acknowledgement may say: a checkpoint may hold what was not acknowledged yet."""
        return min(self._checkpointed_sequence_number, self._committed_sequence_number)

    def _acknowledgement(self) -> ingest_service_pb2.StreamSamplesResponse:
        outcome = BatchOutcome(
            committed_sequence_number=self._committed_sequence_number,
            checkpointed_sequence_number=self._checkpointed,
            rejected_sample_count=self._rejected_sample_count,
            rejection_message=self._rejection_message,
        )
        self._rejected_sample_count, self._rejection_message = 0, ""
        self._told_checkpointed = self._checkpointed
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
