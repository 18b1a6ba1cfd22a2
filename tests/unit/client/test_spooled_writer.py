"""The sample writer with a spool: an outage of any length, the end of any process, and what is told of losses."""

import contextlib
import errno
import itertools
import logging
import os
from array import array
from pathlib import Path

import pytest

from linkbound import (
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
    SeriesDescriptor,
    Spool,
    UnavailableError,
    WhenFull,
)
from linkbound.client import retrying
from linkbound.client.aio_sample_writer import AsyncSampleWriter
from linkbound.client.closing import Closing
from linkbound.client.options import Timeout
from linkbound.client.spool.directory import SpoolDirectory
from linkbound.client.spool.segment import segment_paths
from linkbound.client.writer_options import writer_options
from linkbound.domain.errors import Error, Resource
from linkbound.domain.samples import BatchOutcome, OpenStreamRequest, SampleBatch
from tests.unit.client.memory_service import MemoryService, MemoryStream, break_off_after_storing, once
from tests.unit.client.test_aio_sample_writer import NEVER_REACHED_SECONDS, REQUEST, let_others_run, samples

SHORT_SECONDS = 0.2
SMALL_BYTES = 2**18


def writer(
    service: MemoryService,
    spool: Spool | Path,
    timeout_seconds: Timeout = NEVER_REACHED_SECONDS,
    request: OpenStreamRequest = REQUEST,
    linger_seconds: float = 0,
) -> AsyncSampleWriter:
    return AsyncSampleWriter(service, request, writer_options(spool, linger_seconds, timeout_seconds), Closing())


def away() -> MemoryService:
    return MemoryService(connect_errors=[UnavailableError("refused")] * 1000)


async def leave_in_spool(
    spool: Spool | Path, values: range, request: OpenStreamRequest = REQUEST, count: int = 1
) -> UnavailableError:
    """A process that writes while the service is away, and ends."""
    with pytest.raises(UnavailableError) as caught:
        await write_and_leave(writer(away(), spool, SHORT_SECONDS, request), values, count)
    return caught.value


async def write_and_leave(spooled: AsyncSampleWriter, values: range, count: int = 1) -> None:
    async with spooled:
        for value in values:
            await spooled.write(samples(value, count))


async def write_until_refused(spooled: AsyncSampleWriter, count: int = 1) -> int:
    """How many writes were taken before one raised; the error is raised when there is none."""
    for value in range(10_000):
        try:
            await spooled.write(samples(value, count))
        except ResourceExhaustedError as error:
            assert error.reason == "SPOOL_FULL"
            return value
    raise AssertionError("the spool never filled")


async def flush_in_the_end(spooled: AsyncSampleWriter) -> None:
    """Flush although the timeout of the writer is shorter than a pause between two tries may be."""
    while spooled.pending:
        with contextlib.suppress(UnavailableError):
            await spooled.flush()


def stored_values(service: MemoryService) -> list[int]:
    """The value of each batch that has any, and that numbers are 1, 2, 3, ..."""
    assert service.stored_numbers == list(range(1, len(service.stored) + 1))
    return [batch.columns[0].value[0] for batch in service.stored if batch.columns]


async def test_nobody_waits_for_a_service_that_is_away(tmp_path: Path) -> None:
    service = away()
    async with writer(service, tmp_path) as spooled:
        for value in range(5):
            await spooled.write(samples(value))
        assert (spooled.pending, spooled.committed) == (5, 0)
        service.connect_errors.clear()
    assert stored_values(service) == list(range(5))
    assert (spooled.pending, spooled.committed) == (0, 5)


async def test_what_a_process_leaves_behind_is_told_and_sent_by_the_next(tmp_path: Path) -> None:
    error = await leave_in_spool(tmp_path, range(4), count=3)
    assert (error.reason, error.metadata) == ("NOT_DELIVERED", {"spooledSampleCount": "12"})
    assert error.__notes__ == ["12 samples stay in the spool"]
    await leave_in_spool(tmp_path, range(4, 6))
    service = MemoryService()
    async with writer(service, tmp_path) as spooled:
        await spooled.write(samples(6))
    assert stored_values(service) == list(range(7))


async def test_flush_says_what_is_not_delivered_and_the_writer_goes_on(tmp_path: Path) -> None:
    service = away()
    async with writer(service, tmp_path, SHORT_SECONDS) as spooled:
        await spooled.write(samples(0))
        with pytest.raises(UnavailableError) as caught:
            await spooled.flush()
        assert caught.value.metadata == {"spooledSampleCount": "1"}
        await spooled.write(samples(1))
        service.connect_errors.clear()
        await flush_in_the_end(spooled)
    assert stored_values(service) == [0, 1]


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


async def test_a_new_spool_of_an_old_writer_goes_on_behind_what_is_stored(tmp_path: Path) -> None:
    service = MemoryService()
    async with writer(service, tmp_path / "old") as spooled:
        for value in range(3):
            await spooled.write(samples(value))
    await leave_in_spool(tmp_path / "new", range(3, 5))
    async with writer(service, tmp_path / "new") as spooled:
        await spooled.write(samples(5))
    assert stored_values(service) == list(range(6))


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


async def test_a_full_spool_drops_the_newest_and_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    service = away()
    async with writer(service, Spool(tmp_path, limit_bytes=SMALL_BYTES)) as spooled:
        for value in range(100):
            await spooled.write(samples(value, count=2000))
        kept_count = spooled.pending // 2000
        assert 10 < kept_count < 100
        assert spooled.dropped == (100 - kept_count) * 2000
        service.connect_errors.clear()
        await spooled.flush()
        await spooled.write(samples(100, count=2000))
    assert stored_values(service) == [*range(kept_count), 100]
    messages = [record.getMessage() for record in caplog.records if "spool" in record.getMessage()]
    assert [message.partition(": ")[2] for message in messages] == [
        "the spool is full; new samples are dropped, those in it stay",
        f"the spool has room again; {spooled.dropped:,} samples were dropped meanwhile",
    ]


async def test_a_full_spool_that_is_waited_for_gets_room_or_raises(tmp_path: Path) -> None:
    service = away()
    spool = Spool(tmp_path, limit_bytes=SMALL_BYTES, when_full=WhenFull.WAIT)
    async with writer(service, spool, SHORT_SECONDS) as spooled:
        written = await write_until_refused(spooled, count=2000)
        service.connect_errors.clear()
        await flush_in_the_end(spooled)
        await spooled.write(samples(written, count=2000))
        await flush_in_the_end(spooled)
    assert stored_values(service) == list(range(written + 1))
    assert spooled.dropped == 0


async def test_what_is_stored_but_not_checkpointed_makes_way_for_the_new(tmp_path: Path) -> None:
    service = MemoryService()
    async with writer(service, Spool(tmp_path, limit_bytes=SMALL_BYTES)) as spooled:
        for value in range(100):
            await spooled.write(samples(value, count=2000))
            await spooled.flush()
    assert stored_values(service) == list(range(100))
    assert spooled.dropped == 0


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


async def test_a_spool_is_for_one_process(tmp_path: Path) -> None:
    service = MemoryService()
    async with writer(service, tmp_path):
        with pytest.raises(UnavailableError) as caught:
            async with writer(service, tmp_path):
                pytest.fail("the block must not run")
    assert caught.value.reason == "SPOOL_LOCKED"
    async with writer(service, tmp_path):
        pass


async def test_a_directory_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    with pytest.raises(FailedPreconditionError, match="file") as caught:
        async with writer(MemoryService(), tmp_path / "file"):
            pytest.fail("the block must not run")
    assert caught.value.reason == "SPOOL_UNUSABLE"


async def test_a_disk_that_breaks_ends_the_writer_and_what_is_lost_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    spooled = await writer(away(), tmp_path).__aenter__()
    await spooled.write(samples(0))
    monkeypatch.setattr(SpoolDirectory, "append", fail)
    with pytest.raises(FailedPreconditionError):
        await spooled.write(samples(1, count=3))
    with pytest.raises(FailedPreconditionError) as caught:
        await spooled.__aexit__(None, None, None)
    assert caught.value.reason == "SPOOL_UNUSABLE"
    assert caught.value.metadata == {"spooledSampleCount": "1", "undeliveredSampleCount": "3"}


@pytest.mark.parametrize(
    "error",
    [NotFoundError.of(Resource("run", "r1")), FailedPreconditionError("sealed", reason="RUN_SEALED")],
)
async def test_a_refusal_ends_the_writer_and_the_samples_stay(tmp_path: Path, error: Error) -> None:
    service = MemoryService(connect_errors=[error])
    spooled = await writer(service, tmp_path).__aenter__()

    async def write_on() -> None:
        for value in itertools.count():
            await spooled.write(samples(value))

    with pytest.raises(type(error)):
        await write_on()
    count = spooled.pending
    with pytest.raises(type(error)) as caught:
        await spooled.__aexit__(None, None, None)
    assert count >= 1
    assert caught.value.metadata["spooledSampleCount"].isdecimal()
    async with writer(service, tmp_path) as again:
        await again.write(samples(count))
    assert stored_values(service) == list(range(count + 1))


@pytest.mark.parametrize(
    "error", [ResourceExhaustedError("full", reason="DISK_FULL"), InternalError("a fault", request_id="1")]
)
async def test_a_fault_of_the_service_is_waited_out(
    tmp_path: Path, error: Error, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retrying, "FAULT_BACKOFF_SECONDS", 0.01)
    service = MemoryService(connect_errors=[error])
    async with writer(service, tmp_path) as spooled:
        await spooled.write(samples(0))
    assert stored_values(service) == [0]


async def test_an_outage_is_one_line_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    service = MemoryService(connect_errors=[UnavailableError("refused")] * 4)
    async with writer(service, tmp_path) as spooled:
        await spooled.write(samples(0))
    messages = [record.getMessage() for record in caplog.records if "the service is" in record.getMessage()]
    assert messages == [
        "writer w1 of run r1: the service is away, what is written is kept meanwhile: refused",
        "writer w1 of run r1: the service is back",
    ]


async def test_what_lingers_is_in_the_spool_when_the_client_is_closed(tmp_path: Path) -> None:
    closing = Closing()
    options = writer_options(tmp_path, 3600, NEVER_REACHED_SECONDS)
    spooled = await AsyncSampleWriter(away(), REQUEST, options, closing).__aenter__()
    await spooled.write(samples(0))
    closing.close()
    with pytest.raises(FailedPreconditionError) as caught:
        await spooled.__aexit__(None, None, None)
    assert (caught.value.reason, caught.value.metadata) == ("CLIENT_CLOSED", {"spooledSampleCount": "1"})
    service = MemoryService()
    async with writer(service, tmp_path):
        pass
    assert stored_values(service) == [0]


async def test_a_writer_without_anything_to_do_leaves_at_once_whoever_is_away(tmp_path: Path) -> None:
    async with writer(away(), tmp_path, timeout_seconds=None):
        pass


async def test_samples_share_a_batch_until_they_have_lingered(tmp_path: Path) -> None:
    service = MemoryService()
    async with writer(service, tmp_path, linger_seconds=0.05) as spooled:
        for value in range(5):
            await spooled.write(samples(value))
        while not service.stored:
            await let_others_run()
        assert service.stored[0].columns[0].value == array("q", range(5))
        await spooled.write(samples(5))
    assert [len(batch.columns[0].value) for batch in service.stored] == [5, 1]


async def test_a_batch_that_is_full_does_not_linger(tmp_path: Path) -> None:
    service = MemoryService()
    async with writer(service, tmp_path, linger_seconds=3600) as spooled:
        for value in range(9):
            await spooled.write(samples(value, count=1000))
        while not service.stored:
            await let_others_run()
    assert [batch.sample_count for batch in service.stored] == [8192, 808]


async def test_the_files_of_a_spool_go_as_the_service_checkpoints(tmp_path: Path) -> None:
    service = MemoryService()
    spool = Spool(tmp_path, limit_bytes=SMALL_BYTES)
    async with writer(service, spool) as spooled:
        for value in range(20):
            await spooled.write(samples(value, count=2000))
        await spooled.flush()
        path = tmp_path / "r1" / "w1.spool"
        assert len(segment_paths(path)) > 2
        service.checkpointed = 20
        service.streams[-1].answer(BatchOutcome(committed_sequence_number=20, checkpointed_sequence_number=20))
        while len(segment_paths(path)) > 1:
            await let_others_run()


async def test_a_loss_of_power_is_bounded_by_the_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(SpoolDirectory, "sync", lambda directory: synced.append(directory.next_index))
    async with writer(MemoryService(), Spool(tmp_path / "at once", sync_seconds=0)) as spooled:
        for value in range(3):
            await spooled.write(samples(value))
    assert synced[:3] == [2, 3, 4]
    synced.clear()
    async with writer(MemoryService(), Spool(tmp_path / "soon", sync_seconds=0.01)) as spooled:
        await spooled.write(samples(0))
        while not synced:
            await let_others_run()
        assert synced == [2]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"linger_seconds": -1.0}, "linger_seconds"),
        ({"linger_seconds": float("nan")}, "linger_seconds"),
        ({"timeout_seconds": 0.0}, "timeout_seconds"),
        ({"spool": 7}, "spool"),
    ],
)
def test_options_that_cannot_be_are_refused(arguments: dict[str, float], field: str) -> None:
    wanted = {"spool": None, "linger_seconds": 0.0, "timeout_seconds": None, **arguments}
    with pytest.raises(InvalidArgumentError) as caught:
        writer_options(**wanted)  # type: ignore[arg-type]  # mistakes
    assert [violation.field for violation in caught.value.field_violations] == [field]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [({"limit_bytes": 1}, "limit_bytes"), ({"sync_seconds": -1}, "sync_seconds"), ({"when_full": "WAIT"}, "when_full")],
)
def test_a_spool_that_cannot_be_is_refused(arguments: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        Spool("place", **arguments)  # type: ignore[arg-type]  # mistakes
    assert [violation.field for violation in caught.value.field_violations] == [field]
