"""An ingest service in memory, for the sample writer: in order, each number once, with faults on request."""

import asyncio
from collections.abc import Callable

from attrs import define, field

from linkbound.client.sample_stream import BatchRefusal, SampleConnection, SampleEvent
from linkbound.convert.sample_payload import batch_of_payload
from linkbound.domain.errors import Error, FailedPreconditionError, OutOfRangeError, UnavailableError
from linkbound.domain.samples import BatchOutcome, OpenStreamRequest, SampleBatch, StreamLimits, StreamStart

Fault = Callable[["MemoryStream", SampleBatch], bool]
"""Asked about each batch that arrives; True: the fault took care of it."""

ROOMY = StreamLimits(max_in_flight_batches=4, max_batch_bytes=2**20)


@define
class MemoryService:
    """The connector and the store at once. What is above `checkpointed` can be lost: `lose_tail`."""

    committed: int = 0
    checkpointed: int = 0
    rejected: int = 0
    limits: StreamLimits = ROOMY
    connect_errors: list[Error] = field(factory=list)
    faults: list[Fault] = field(factory=list)
    stored: list[SampleBatch] = field(factory=list)
    opened: list[OpenStreamRequest] = field(factory=list)
    streams: list["MemoryStream"] = field(factory=list)
    closed_count: int = 0

    async def connect(self, request: OpenStreamRequest) -> SampleConnection:
        """Open a stream, or fail as told."""
        await asyncio.sleep(0)
        if self.connect_errors:
            raise self.connect_errors.pop(0)
        self.opened.append(request)
        first_kept = request.first_kept_sequence_number or request.last_acked_sequence_number + 1
        if first_kept > self.committed + 1:
            raise FailedPreconditionError("gone", reason="ACKED_DATA_MISSING")
        self.streams.append(MemoryStream(self))
        return self.streams[-1]

    async def close(self) -> None:
        """Count that it was called."""
        self.closed_count += 1

    def lose_tail(self, committed: int) -> None:
        """What a damaged log does: nothing above `committed` is stored any more."""
        self.committed = committed
        self.stored = [batch for batch in self.stored if batch.sequence_number <= committed]

    @property
    def stored_numbers(self) -> list[int]:
        """Numbers of the stored batches, in the order in which they were stored."""
        return [batch.sequence_number for batch in self.stored]


class MemoryStream:
    """One stream."""

    def __init__(self, service: MemoryService) -> None:
        self.service = service
        self.start = StreamStart(
            committed_sequence_number=service.committed,
            checkpointed_sequence_number=service.checkpointed,
            rejected_sample_count=service.rejected,
            limits=service.limits,
        )
        self.is_closed = False
        self._events: asyncio.Queue[SampleEvent | BaseException | None] = asyncio.Queue()

    async def send(self, sequence_number: int, payload: bytes) -> None:
        """Take a batch, unless a fault does."""
        await asyncio.sleep(0)
        batch = batch_of_payload(sequence_number, payload)
        if self.service.faults and self.service.faults[0](self, batch):
            return
        self.take(batch)

    def take(self, batch: SampleBatch) -> None:
        """Store and acknowledge, as the protocol says."""
        self.store(batch)
        self.answer(
            BatchOutcome(
                committed_sequence_number=self.service.committed,
                checkpointed_sequence_number=self.service.checkpointed,
            )
        )

    def store(self, batch: SampleBatch) -> None:
        """Store without acknowledging."""
        number, expected = batch.sequence_number, self.service.committed + 1
        if number > expected:
            self.answer(BatchRefusal(number, OutOfRangeError("a gap", reason="SEQUENCE_GAP")))
        elif number == expected:
            self.service.stored.append(batch)
            self.service.committed = number

    def answer(self, event: SampleEvent | BaseException | None) -> None:
        """Send an event, or end the stream with an error."""
        self._events.put_nowait(event)

    async def receive(self) -> SampleEvent | None:
        """The next answer."""
        event = await self._events.get()
        if isinstance(event, BaseException):
            raise event
        return event

    async def finish(self) -> None:
        """The writer is done."""
        self.answer(None)

    async def close(self) -> None:
        """The stream is given up."""
        self.is_closed = True


def once(fault: Callable[["MemoryStream", SampleBatch], None], *, at: int = 1) -> Fault:
    """`fault` for the batch with the number `at` the first time it arrives."""

    def apply(stream: MemoryStream, batch: SampleBatch) -> bool:
        if batch.sequence_number != at:
            return False
        stream.service.faults.pop(0)
        fault(stream, batch)
        return True

    return apply


def break_off(stream: MemoryStream, batch: SampleBatch) -> None:
    """The connection breaks before the batch is stored."""
    stream.answer(UnavailableError("connection reset"))


def break_off_after_storing(stream: MemoryStream, batch: SampleBatch) -> None:
    """The connection breaks after the batch is stored and before it is acknowledged."""
    stream.store(batch)
    stream.answer(UnavailableError("connection reset"))
