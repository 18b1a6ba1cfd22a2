"""What becomes of an open sample writer when its client, its channel or its caller goes away."""

import asyncio
import threading

import pytest

from linkbound.client.aio_sample_writer import AsyncSampleWriter
from linkbound.client.closing import Closing
from linkbound.client.sample_writer import SampleWriter
from linkbound.domain.errors import FailedPreconditionError
from linkbound.domain.samples import SampleBatch
from tests.unit.client.memory_service import MemoryService, MemoryStream
from tests.unit.client.test_aio_sample_writer import REQUEST, let_others_run, options, samples, writer_to


def hold(_stream: MemoryStream, _batch: SampleBatch) -> bool:
    """Never stores the batch."""
    return True


def close_channel(stream: MemoryStream, _batch: SampleBatch) -> bool:
    """What gRPC does to the reader of a stream whose channel is closed."""
    stream.answer(asyncio.CancelledError())
    return True


async def test_a_channel_that_is_closed_under_a_writer_raises_what_was_not_delivered() -> None:
    service = MemoryService(faults=[close_channel])
    with pytest.raises(FailedPreconditionError) as caught:
        async with writer_to(service) as writer:
            await writer.write(samples(1, count=7))
    assert (caught.value.reason, caught.value.metadata) == ("CLIENT_CLOSED", {"undeliveredSampleCount": "7"})
    assert service.closed_count == 1


async def test_a_channel_that_is_closed_ends_whoever_waits() -> None:
    service = MemoryService(faults=[hold])
    writer = await writer_to(service).__aenter__()
    await writer.write(samples(1))
    waiting = [asyncio.create_task(writer.flush()) for _ in range(2)]
    await let_others_run()
    service.streams[0].answer(asyncio.CancelledError())
    for outcome in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(outcome, FailedPreconditionError)
        assert outcome.reason == "CLIENT_CLOSED"
    with pytest.raises(FailedPreconditionError):
        await writer.write(samples(3))
    with pytest.raises(FailedPreconditionError):
        await writer.__aexit__(None, None, None)


async def test_a_writer_with_nothing_on_the_way_leaves_quietly() -> None:
    closing, service = Closing(), MemoryService()
    async with AsyncSampleWriter(service, REQUEST, options(60), closing) as writer:
        await writer.write(samples(1))
        await writer.flush()
        closing.close()
        for use in (writer.write(samples(2)), writer.flush()):
            with pytest.raises(FailedPreconditionError) as caught:
                await use
            assert caught.value.reason == "CLIENT_CLOSED"
    assert service.stored_numbers == [1]
    assert service.closed_count == 1


async def test_closing_while_a_writer_is_entered_ends_entering() -> None:
    closing, service = Closing(), MemoryService()
    entering = asyncio.create_task(AsyncSampleWriter(service, REQUEST, options(60), closing).__aenter__())
    # The writer waits for a stream that its runner, which never ran, has not opened.
    await asyncio.sleep(0)
    closing.close()
    with pytest.raises(FailedPreconditionError) as caught:
        await entering
    assert caught.value.reason == "CLIENT_CLOSED"
    assert service.opened == []


async def test_a_writer_of_a_closed_client_cannot_be_entered() -> None:
    closing, service = Closing(), MemoryService()
    writer = AsyncSampleWriter(service, REQUEST, options(60), closing)
    closing.close()
    with pytest.raises(FailedPreconditionError) as caught:
        await writer.__aenter__()
    assert caught.value.reason == "CLIENT_CLOSED"


async def test_a_cancelled_caller_is_cancelled_while_it_leaves() -> None:
    service = MemoryService(faults=[hold])

    async def write_and_leave() -> None:
        async with writer_to(service) as writer:
            await writer.write(samples(1))

    leaving = asyncio.create_task(write_and_leave())
    await let_others_run()
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert service.closed_count == 1
    assert all(stream.is_closed for stream in service.streams)


def test_another_thread_closes_the_client_of_a_blocking_writer() -> None:
    closing, held = Closing(), threading.Event()

    def hold_and_tell(_stream: MemoryStream, _batch: SampleBatch) -> bool:
        held.set()
        return True

    service = MemoryService(faults=[hold_and_tell])

    def close_once_held() -> None:
        held.wait()
        closing.close()

    def write_and_flush() -> None:
        with SampleWriter(service, REQUEST, options(None), closing) as writer:
            writer.write(samples(1, count=4))
            writer.flush()

    closer = threading.Thread(target=close_once_held)
    closer.start()
    with pytest.raises(FailedPreconditionError) as caught:
        write_and_flush()
    closer.join()
    assert (caught.value.reason, caught.value.metadata) == ("CLIENT_CLOSED", {"undeliveredSampleCount": "4"})
    assert service.closed_count == 1


def test_a_writer_that_was_left_does_not_mind() -> None:
    closing = Closing()
    with SampleWriter(MemoryService(), REQUEST, options(60), closing) as writer:
        writer.write(samples(1))
    closing.close()
    closing.close()
    assert writer.committed == 1
