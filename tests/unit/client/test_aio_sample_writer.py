import asyncio
from array import array

import pytest

from linkbound.client.aio_sample_writer import AsyncSampleWriter
from linkbound.client.closing import Closing
from linkbound.client.options import Timeout
from linkbound.client.sample_stream import BatchRefusal
from linkbound.client.writer_options import WriterOptions, writer_options
from linkbound.domain.errors import (
    AbortedError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    Resource,
    ResourceExhaustedError,
    UnavailableError,
    Violation,
)
from linkbound.domain.samples import (
    BatchOutcome,
    OpenStreamRequest,
    SampleBatch,
    SampleColumns,
    SeriesDescriptor,
    StreamLimits,
)
from tests.unit.client.memory_service import (
    MemoryService,
    MemoryStream,
    break_off,
    break_off_after_storing,
    once,
)

REQUEST = OpenStreamRequest(run="r1", writer_id="w1", series=(SeriesDescriptor(metric="port_xmit_data", node="n1"),))
NEVER_REACHED_SECONDS = 120.0


def options(timeout_seconds: Timeout = NEVER_REACHED_SECONDS) -> WriterOptions:
    """Every write is a batch."""
    return writer_options(None, 0, timeout_seconds)


def samples(value: int, count: int = 1) -> list[SampleColumns]:
    return [SampleColumns(series_index=0, time_ns=tuple(range(count)), value=(value,) * count)]


def writer_to(service: MemoryService, timeout_seconds: Timeout = NEVER_REACHED_SECONDS) -> AsyncSampleWriter:
    return AsyncSampleWriter(service, REQUEST, options(timeout_seconds), Closing())


async def write_in_a_block(writer: AsyncSampleWriter, count: int, error: Exception | None = None) -> None:
    """Write one batch of `count` samples, then raise `error`, or flush if there is none."""
    async with writer:
        await writer.write(samples(1, count))
        if error is not None:
            raise error
        await writer.flush()


async def let_others_run() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


async def test_batches_are_numbered_from_one_and_stored_in_order() -> None:
    service = MemoryService()
    async with writer_to(service) as writer:
        for value in range(10):
            await writer.write(samples(value))
    assert service.stored_numbers == list(range(1, 11))
    assert [batch.columns[0].value for batch in service.stored] == [array("q", [value]) for value in range(10)]
    assert (writer.committed, writer.rejected, writer.rejection_message) == (10, 0, "")
    assert service.closed_count == 1
    assert all(stream.is_closed for stream in service.streams)


async def test_a_restarted_writer_goes_on_after_what_is_stored() -> None:
    service = MemoryService(committed=7)
    async with writer_to(service) as writer:
        assert writer.committed == 7
        await writer.write(samples(1))
    assert service.stored_numbers == [8]


async def test_flush_returns_once_everything_is_stored() -> None:
    service = MemoryService()
    async with writer_to(service) as writer:
        await writer.write(samples(1))
        await writer.write(samples(2))
        await writer.flush()
        assert service.stored_numbers == [1, 2]
        assert writer.committed == 2


@pytest.mark.parametrize("fault", [break_off, break_off_after_storing])
@pytest.mark.parametrize("at", [1, 3, 5])
async def test_after_a_break_every_batch_is_stored_exactly_once(fault: object, at: int) -> None:
    assert callable(fault)
    service = MemoryService(faults=[once(fault, at=at)])
    async with writer_to(service) as writer:
        for value in range(5):
            await writer.write(samples(value))
    assert service.stored_numbers == [1, 2, 3, 4, 5]
    assert len(service.streams) == 2
    assert service.opened[1].last_acked_sequence_number <= at
    assert all(stream.is_closed for stream in service.streams)


async def test_a_service_that_comes_late_is_waited_for() -> None:
    service = MemoryService(connect_errors=[UnavailableError("refused"), UnavailableError("refused")])
    async with writer_to(service) as writer:
        await writer.write(samples(1))
    assert service.stored_numbers == [1]


async def test_no_more_batches_are_under_way_than_the_service_allows() -> None:
    held: list[tuple[MemoryStream, SampleBatch]] = []

    def hold(stream: MemoryStream, batch: SampleBatch) -> bool:
        held.append((stream, batch))
        return True

    limits = StreamLimits(max_in_flight_batches=2, max_batch_bytes=2**20)
    service = MemoryService(limits=limits, faults=[hold])
    async with writer_to(service) as writer:
        for value in range(3):
            await writer.write(samples(value))
        await let_others_run()
        assert len(held) == 2
        assert writer.pending == 3
        service.faults.clear()
        for stream, batch in held:
            stream.take(batch)
    assert service.stored_numbers == [1, 2, 3]
    assert writer.pending == 0


async def test_a_write_that_is_too_large_for_one_batch_is_cut() -> None:
    service = MemoryService(limits=StreamLimits(max_in_flight_batches=2, max_batch_bytes=1024))
    async with writer_to(service) as writer:
        await writer.write(samples(5, count=100))
    assert len(service.stored) > 1
    assert [time for batch in service.stored for time in batch.columns[0].time_ns] == list(range(100))


async def test_rejected_samples_are_counted_and_the_rest_goes_on() -> None:
    def reject(stream: MemoryStream, batch: SampleBatch) -> None:
        stream.store(batch)
        stream.answer(
            BatchOutcome(
                committed_sequence_number=stream.service.committed,
                rejected_sample_count=2,
                rejection_message="times fall",
            )
        )

    service = MemoryService(faults=[once(reject, at=1), once(reject, at=3)])
    async with writer_to(service) as writer:
        for value in range(3):
            await writer.write(samples(value, count=4))
    assert (writer.rejected, writer.rejection_message, writer.committed) == (4, "times fall", 3)


async def test_rejected_samples_of_a_lost_acknowledgement_are_counted() -> None:
    def reject_and_break_off(stream: MemoryStream, batch: SampleBatch) -> None:
        stream.service.rejected += 3
        break_off_after_storing(stream, batch)

    def reject(stream: MemoryStream, batch: SampleBatch) -> None:
        stream.service.rejected += 1
        stream.store(batch)
        stream.answer(BatchOutcome(committed_sequence_number=batch.sequence_number, rejected_sample_count=1))

    service = MemoryService(rejected=100, faults=[once(reject_and_break_off, at=2), once(reject, at=3)])
    async with writer_to(service) as writer:
        for value in range(4):
            await writer.write(samples(value, count=4))
    assert service.stored_numbers == [1, 2, 3, 4]
    assert writer.rejected == 4


async def test_a_malformed_batch_counts_as_rejected_and_uses_up_its_number() -> None:
    def refuse(stream: MemoryStream, batch: SampleBatch) -> None:
        stream.service.committed = batch.sequence_number
        stream.answer(BatchRefusal(batch.sequence_number, InvalidArgumentError([Violation("columns", "odd")])))

    service = MemoryService(faults=[once(refuse, at=2)])
    async with writer_to(service) as writer:
        for value in range(3):
            await writer.write(samples(value, count=3))
    assert service.stored_numbers == [1, 3]
    assert (writer.rejected, writer.rejection_message) == (3, "columns: odd")


async def test_a_full_queue_is_tried_again_and_a_gap_heals() -> None:
    def refuse(stream: MemoryStream, batch: SampleBatch) -> None:
        error = ResourceExhaustedError("full", reason="QUEUE_FULL", retry_delay_seconds=0.01)
        stream.answer(BatchRefusal(batch.sequence_number, error))

    service = MemoryService(faults=[once(refuse, at=2)])
    async with writer_to(service) as writer:
        for value in range(4):
            await writer.write(samples(value))
    assert service.stored_numbers == [1, 2, 3, 4]


async def test_a_full_disk_is_not_tried_again() -> None:
    def refuse(stream: MemoryStream, batch: SampleBatch) -> bool:
        stream.answer(BatchRefusal(batch.sequence_number, ResourceExhaustedError("full", reason="DISK_FULL")))
        return True

    service = MemoryService(faults=[refuse])
    with pytest.raises(ResourceExhaustedError) as caught:
        async with writer_to(service) as writer:
            await writer.write(samples(1, count=6))
    assert caught.value.metadata["undeliveredSampleCount"] == "6"
    assert len(service.streams) == 1


async def test_a_sealed_run_ends_the_writer_at_once() -> None:
    def seal(stream: MemoryStream, batch: SampleBatch) -> bool:
        stream.answer(FailedPreconditionError("sealed", reason="RUN_SEALED"))
        return True

    service = MemoryService(faults=[seal])
    with pytest.raises(FailedPreconditionError) as caught:
        await write_in_a_block(writer_to(service), count=2)
    assert caught.value.reason == "RUN_SEALED"
    assert caught.value.metadata["undeliveredSampleCount"] == "2"


async def test_a_run_that_does_not_exist_fails_on_entering() -> None:
    missing = NotFoundError.of(Resource("run", "r1"))
    service = MemoryService(connect_errors=[missing])
    with pytest.raises(NotFoundError):
        async with writer_to(service):
            pytest.fail("the block must not run")
    assert service.closed_count == 1


async def test_a_service_that_stays_away_fails_on_entering() -> None:
    service = MemoryService(connect_errors=[UnavailableError("refused")] * 1000)
    with pytest.raises(UnavailableError):
        async with writer_to(service, timeout_seconds=0.2):
            pytest.fail("the block must not run")


async def test_a_service_that_goes_away_for_good_raises_at_exit() -> None:
    def go_away(stream: MemoryStream, batch: SampleBatch) -> bool:
        stream.service.connect_errors.extend([UnavailableError("refused")] * 1000)
        stream.answer(UnavailableError("connection reset"))
        return True

    service = MemoryService(faults=[go_away])
    with pytest.raises(UnavailableError) as caught:
        async with writer_to(service, timeout_seconds=0.3) as writer:
            await writer.write(samples(1, count=3))
    assert caught.value.metadata["undeliveredSampleCount"] == "3"


async def test_a_service_that_stores_nothing_any_more_raises_at_exit() -> None:
    service = MemoryService(faults=[lambda _stream, _batch: True])
    with pytest.raises(UnavailableError) as caught:
        async with writer_to(service, timeout_seconds=0.3) as writer:
            await writer.write(samples(1))
    assert caught.value.metadata["undeliveredSampleCount"] == "1"


async def test_a_stream_that_the_service_ends_is_opened_again() -> None:
    def end(stream: MemoryStream, batch: SampleBatch) -> None:
        stream.answer(None)

    service = MemoryService(faults=[once(end, at=1)])
    async with writer_to(service) as writer:
        await writer.write(samples(1))
    assert service.stored_numbers == [1]


async def test_another_writer_with_the_same_id_is_noticed() -> None:
    def steal(stream: MemoryStream, batch: SampleBatch) -> None:
        stream.service.committed = 9
        stream.answer(UnavailableError("connection reset"))

    service = MemoryService(faults=[once(steal, at=1)])
    with pytest.raises(AbortedError) as caught:
        async with writer_to(service) as writer:
            await writer.write(samples(1))
    assert caught.value.reason == "WRITER_CONFLICT"


async def test_an_error_of_the_block_is_raised_after_what_was_written_is_stored() -> None:
    service = MemoryService()
    with pytest.raises(KeyError):
        await write_in_a_block(writer_to(service), count=1, error=KeyError("of the block"))
    assert service.stored_numbers == [1]


async def test_an_error_of_the_block_says_what_was_not_delivered() -> None:
    service = MemoryService(faults=[lambda _stream, _batch: True])
    writer = writer_to(service, timeout_seconds=0.2)
    with pytest.raises(KeyError) as caught:
        await write_in_a_block(writer, count=3, error=KeyError("of the block"))
    assert any("3 samples were not delivered" in note for note in caught.value.__notes__)


async def test_malformed_columns_use_up_no_number() -> None:
    service = MemoryService()
    async with writer_to(service) as writer:
        with pytest.raises(InvalidArgumentError):
            await writer.write([SampleColumns(series_index=0, time_ns=(1, 2), value=(1,))])
        await writer.write(samples(1))
    assert service.stored_numbers == [1]


async def test_a_writer_is_used_within_its_block_only() -> None:
    service = MemoryService()
    writer = writer_to(service)
    with pytest.raises(FailedPreconditionError, match="not open"):
        await writer.write(samples(1))
    async with writer:
        pass
    for use in (writer.write(samples(1)), writer.flush(), writer.__aenter__()):
        with pytest.raises(FailedPreconditionError) as caught:
            await use
        assert caught.value.reason == "WRITER_CLOSED"


async def test_entering_can_be_cancelled() -> None:
    service = MemoryService(connect_errors=[UnavailableError("refused")] * 1000)
    entering = asyncio.create_task(writer_to(service).__aenter__())
    await let_others_run()
    entering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await entering
    assert service.closed_count == 1
