"""The files below a sample writer: a spool that is full, locked, unusable, or broken, and when its files go."""

import errno
import os
from pathlib import Path

import pytest

from linkbound import FailedPreconditionError, InvalidArgumentError, Spool, UnavailableError, WhenFull
from linkbound.client.spool.directory import SpoolDirectory
from linkbound.client.spool.segment import segment_paths
from linkbound.domain.samples import BatchOutcome
from tests.unit.client.memory_service import MemoryService
from tests.unit.client.spooled_writing import (
    SHORT_SECONDS,
    SMALL_BYTES,
    away,
    flush_in_the_end,
    stored_values,
    write_until_refused,
    writer,
)
from tests.unit.client.test_aio_sample_writer import let_others_run, samples


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
    ("arguments", "field"),
    [({"limit_bytes": 1}, "limit_bytes"), ({"sync_seconds": -1}, "sync_seconds"), ({"when_full": "WAIT"}, "when_full")],
)
def test_a_spool_that_cannot_be_is_refused(arguments: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        Spool("place", **arguments)  # type: ignore[arg-type]  # mistakes
    assert [violation.field for violation in caught.value.field_violations] == [field]
