"""What the service, a process or the power lost of the samples of a writer with a spool: it is sent again, or told."""

from pathlib import Path

import pytest

from linkbound import FailedPreconditionError, SeriesDescriptor, Spool, UnavailableError
from linkbound.client.aio_sample_writer import AsyncSampleWriter
from linkbound.client.closing import Closing
from linkbound.client.spool.segment import segment_paths
from linkbound.client.writer_options import writer_options
from linkbound.domain.samples import OpenStreamRequest, SampleBatch
from tests.unit.client.memory_service import MemoryService, MemoryStream, break_off_after_storing, once
from tests.unit.client.spooled_writing import (
    SHORT_SECONDS,
    SMALL_BYTES,
    leave_in_spool,
    stored_values,
    write_and_leave,
    writer,
)
from tests.unit.client.test_aio_sample_writer import NEVER_REACHED_SECONDS, REQUEST, let_others_run, samples


async def test_a_lost_acknowledgement_stores_nothing_twice_in_the_next_process(tmp_path: Path) -> None:
    def store_and_go_away(stream: MemoryStream, batch: SampleBatch) -> None:
        break_off_after_storing(stream, batch)
        stream.service.connect_errors.extend([UnavailableError("refused")] * 1000)

    service = MemoryService(faults=[once(store_and_go_away, at=3)])
    with pytest.raises(UnavailableError):
        await write_and_leave(writer(service, tmp_path, SHORT_SECONDS), range(5))
    service.connect_errors.clear()
    async with writer(service, tmp_path) as spooled:
        await spooled.write(samples(5))
    assert stored_values(service) == list(range(6))


@pytest.mark.parametrize("kept", ["memory", "spool"])
async def test_what_the_service_lost_is_sent_again(tmp_path: Path, kept: str, caplog: pytest.LogCaptureFixture) -> None:
    service = MemoryService()
    options = writer_options(tmp_path if kept == "spool" else None, 0, NEVER_REACHED_SECONDS)
    async with AsyncSampleWriter(service, REQUEST, options, Closing()) as spooled:
        for value in range(6):
            await spooled.write(samples(value))
        service.checkpointed = 2
        await spooled.write(samples(6))
        await spooled.flush()
        assert (spooled.committed, spooled.checkpointed) == (7, 2)
        service.lose_tail(3)
        service.streams[-1].answer(UnavailableError("connection reset"))
        await spooled.write(samples(7))
    assert stored_values(service) == list(range(8))
    assert service.opened[-1].last_acked_sequence_number == 7
    assert 1 <= service.opened[-1].first_kept_sequence_number <= 3
    assert any("lost 4 batches" in record.getMessage() for record in caplog.records)


async def test_what_the_service_lost_while_no_writer_ran_is_sent_again(tmp_path: Path) -> None:
    service = MemoryService(checkpointed=2)
    async with writer(service, tmp_path) as spooled:
        for value in range(6):
            await spooled.write(samples(value))
    service.lose_tail(2)
    async with writer(service, tmp_path) as spooled:
        await spooled.write(samples(6))
    assert stored_values(service) == list(range(7))


async def test_what_the_service_lost_for_good_is_told(tmp_path: Path) -> None:
    service = MemoryService()
    spool = Spool(tmp_path, limit_bytes=SMALL_BYTES)
    async with writer(service, spool) as spooled:
        for value in range(20):
            service.checkpointed = max(0, value - 1)
            await spooled.write(samples(value, count=2000))
            await spooled.flush()
    first_kept = service.stored_numbers[-1]
    service.checkpointed = 0
    service.lose_tail(1)
    with pytest.raises(FailedPreconditionError) as caught:
        async with writer(service, spool) as spooled:
            await spooled.flush()
    assert caught.value.reason == "ACKED_DATA_MISSING"
    assert 2 < service.opened[-1].first_kept_sequence_number <= first_kept


async def test_what_was_sent_and_lost_with_the_power_is_no_conflict(tmp_path: Path) -> None:
    service = MemoryService()
    async with writer(service, tmp_path) as spooled:
        for value in range(5):
            await spooled.write(samples(value))
    # The last two batches never reached the disk, and the service has them.
    (path,) = segment_paths(tmp_path / "r1" / "w1.spool")
    path.write_bytes(path.read_bytes()[: -2 * len(path.read_bytes()) // 7])
    await leave_in_spool(tmp_path, range(5, 7))
    async with writer(service, tmp_path) as spooled:
        await spooled.write(samples(7))
    assert stored_values(service) == list(range(8))


@pytest.mark.parametrize("kept", ["memory", "spool"])
async def test_a_break_before_the_first_write_is_no_conflict(tmp_path: Path, kept: str) -> None:
    service = MemoryService()
    async with writer(service, tmp_path / "old") as spooled:
        await spooled.write(samples(0))
    options = writer_options(tmp_path / "new" if kept == "spool" else None, 0, NEVER_REACHED_SECONDS)
    async with AsyncSampleWriter(service, REQUEST, options, Closing()) as again:
        while len(service.streams) < 2:
            await let_others_run()
        service.streams[-1].answer(UnavailableError("connection reset"))
        while len(service.streams) < 3:
            await let_others_run()
        await again.write(samples(1))
    assert stored_values(service) == [0, 1]


def other_series() -> OpenStreamRequest:
    return OpenStreamRequest(
        run="r1",
        writer_id="w1",
        series=(SeriesDescriptor(metric="port_rcv_data", node="n1"), *REQUEST.series),
    )


async def test_what_an_earlier_process_wrote_is_sent_with_its_own_series(tmp_path: Path) -> None:
    await leave_in_spool(tmp_path, range(3))
    service = MemoryService()
    series_of_values: dict[int, OpenStreamRequest] = {}

    def note(stream: MemoryStream, batch: SampleBatch) -> bool:
        series_of_values[batch.columns[0].value[0]] = stream.service.opened[-1]
        return False

    service.faults.append(note)
    async with writer(service, tmp_path, request=other_series()) as spooled:
        await spooled.write(samples(3))
        await spooled.write(samples(4))
    assert stored_values(service) == list(range(5))
    assert {value: request.series for value, request in series_of_values.items()} == {
        **dict.fromkeys(range(3), REQUEST.series),
        **dict.fromkeys(range(3, 5), other_series().series),
    }
    assert len(service.streams) == 2


async def test_losing_batches_of_two_series_lists_sends_each_with_its_own(tmp_path: Path) -> None:
    service = MemoryService()
    async with writer(service, tmp_path) as spooled:
        for value in range(3):
            await spooled.write(samples(value))
    async with writer(service, tmp_path, request=other_series()) as spooled:
        await spooled.write(samples(3))
        await spooled.flush()
        service.lose_tail(1)
        service.streams[-1].answer(UnavailableError("connection reset"))
        await spooled.write(samples(4))
    assert stored_values(service) == list(range(5))


async def test_a_damaged_batch_is_left_out_and_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    await leave_in_spool(tmp_path, range(9), count=10)
    (path,) = segment_paths(tmp_path / "r1" / "w1.spool")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    service = MemoryService()
    async with writer(service, tmp_path) as spooled:
        await spooled.write(samples(9))
    values = stored_values(service)
    assert len(service.stored) == 10
    assert len(values) == 9
    assert values == sorted(set(values))
    assert (spooled.damaged, spooled.pending) == (1, 0)
    assert any("was damaged in the spool" in record.getMessage() for record in caplog.records)


async def test_a_new_spool_of_an_old_writer_goes_on_behind_what_is_stored(tmp_path: Path) -> None:
    service = MemoryService()
    async with writer(service, tmp_path / "old") as spooled:
        for value in range(3):
            await spooled.write(samples(value))
    await leave_in_spool(tmp_path / "new", range(3, 5))
    async with writer(service, tmp_path / "new") as spooled:
        await spooled.write(samples(5))
    assert stored_values(service) == list(range(6))
