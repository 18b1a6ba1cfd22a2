"""Sample writers with a spool over a service in memory, and what tests of them ask again and again."""

import contextlib
from pathlib import Path

import pytest

from linkbound import ResourceExhaustedError, Spool, UnavailableError
from linkbound.client.aio_sample_writer import AsyncSampleWriter
from linkbound.client.closing import Closing
from linkbound.client.options import Timeout
from linkbound.client.writer_options import writer_options
from linkbound.domain.samples import OpenStreamRequest
from tests.unit.client.memory_service import MemoryService
from tests.unit.client.test_aio_sample_writer import NEVER_REACHED_SECONDS, REQUEST, samples

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
