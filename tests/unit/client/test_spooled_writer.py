"""The sample writer with a spool: an outage of any length, the end of any process, and batches that linger."""

import itertools
import logging
from array import array
from pathlib import Path

import pytest

from linkbound import (
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
    UnavailableError,
)
from linkbound.client import retrying
from linkbound.client.aio_sample_writer import AsyncSampleWriter
from linkbound.client.closing import Closing
from linkbound.client.writer_options import writer_options
from linkbound.domain.errors import Error, Resource
from tests.unit.client.memory_service import MemoryService
from tests.unit.client.spooled_writing import (
    SHORT_SECONDS,
    away,
    flush_in_the_end,
    leave_in_spool,
    stored_values,
    writer,
)
from tests.unit.client.test_aio_sample_writer import NEVER_REACHED_SECONDS, REQUEST, let_others_run, samples


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
