"""A sample writer that was quiet for longer than its timeout. The clock of the event loop is moved, not waited for."""

import asyncio
from collections.abc import Callable

import pytest

from linkbound.domain.errors import UnavailableError
from tests.unit.client.memory_service import MemoryService, break_off, once
from tests.unit.client.test_aio_sample_writer import NEVER_REACHED_SECONDS, let_others_run, samples, writer_to


@pytest.fixture
async def skip_seconds(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Moves the clock of the event loop on, and with it every timeout of the writer."""
    loop = asyncio.get_running_loop()
    real_time, skipped_seconds = loop.time, [0.0]
    monkeypatch.setattr(loop, "time", lambda: real_time() + sum(skipped_seconds))
    return skipped_seconds.append


async def test_a_quiet_writer_survives_a_break_longer_after_its_last_batch_than_the_timeout(
    skip_seconds: Callable[[float], None],
) -> None:
    service = MemoryService()
    async with writer_to(service) as writer:
        await writer.write(samples(1))
        await writer.flush()
        skip_seconds(2 * NEVER_REACHED_SECONDS)
        service.streams[0].answer(UnavailableError("connection reset"))
        await let_others_run()
        await writer.write(samples(2))
    assert service.stored_numbers == [1, 2]


async def test_a_break_after_a_quiet_time_is_bridged_for_the_whole_timeout(
    skip_seconds: Callable[[float], None],
) -> None:
    service = MemoryService()
    async with writer_to(service) as writer:
        await writer.write(samples(1))
        await writer.flush()
        skip_seconds(2 * NEVER_REACHED_SECONDS)
        service.faults.append(once(break_off, at=2))
        await writer.write(samples(2))
    assert service.stored_numbers == [1, 2]


async def test_a_service_that_stores_nothing_after_a_quiet_time_is_given_up_a_timeout_after_the_write(
    skip_seconds: Callable[[float], None],
) -> None:
    service = MemoryService()
    writer = await writer_to(service).__aenter__()
    await writer.write(samples(1))
    await writer.flush()
    service.faults.append(lambda _stream, _batch: True)
    await writer.write(samples(2))
    flushing = asyncio.create_task(writer.flush())
    skip_seconds(0.9 * NEVER_REACHED_SECONDS)
    await let_others_run()
    assert not flushing.done()
    skip_seconds(0.2 * NEVER_REACHED_SECONDS)
    with pytest.raises(UnavailableError):
        await flushing
    with pytest.raises(UnavailableError) as caught:
        await writer.__aexit__(None, None, None)
    assert caught.value.metadata["undeliveredSampleCount"] == "1"
