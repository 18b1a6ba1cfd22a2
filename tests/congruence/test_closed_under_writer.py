"""A client that is closed under its open sample writer: one rule, blocking or not, with a server or in this process."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from linkbound import (
    AsyncIngestClient,
    FailedPreconditionError,
    IngestClient,
    SampleColumns,
    SeriesDescriptor,
)
from tests.bound import bounded
from tests.congruence.servers import ingest_server, running

SERIES = [SeriesDescriptor(metric="port_xmit_data", node="n1")]
PLACES = ["local", "remote"]
BATCH_COUNT = 20


@pytest.fixture(autouse=True)
def no_test_hangs() -> Iterator[None]:
    with bounded():
        yield


def batch(number: int) -> list[SampleColumns]:
    return [SampleColumns(series_index=0, time_ns=(number,), value=(number,))]


@contextmanager
def target_of(place: str, directory: Path) -> Iterator[str]:
    """Where a store with the run `r1` is."""
    if place == "local":
        with IngestClient(data_directory=directory) as client:
            client.create_run("r1")
        yield "local:"
    else:
        with running(ingest_server(directory)) as server:
            with IngestClient(server.target) as client:
                client.create_run("r1")
            yield server.target


def check_nothing_is_lost_silently(error: FailedPreconditionError | None, target: str, directory: Path) -> None:
    """What is not stored of BATCH_COUNT batches of one sample was raised as undelivered."""
    with IngestClient(target, data_directory=directory) as client:
        stored = client.get_run("r1").row_counts.sample_count
    undelivered = 0
    if error is not None:
        assert error.reason == "CLIENT_CLOSED"
        undelivered = int(error.metadata["undeliveredSampleCount"])
    assert stored <= BATCH_COUNT <= stored + undelivered


def error_of(use: Callable[[], object]) -> FailedPreconditionError | None:
    try:
        use()
    except FailedPreconditionError as error:
        return error
    return None


@pytest.mark.parametrize("place", PLACES)
def test_a_blocking_writer_refuses_and_leaves_quietly(tmp_path: Path, place: str) -> None:
    with target_of(place, tmp_path) as target:
        client = IngestClient(target, data_directory=tmp_path)
        with client.writer("r1", "w1", SERIES) as writer:
            writer.write(batch(1))
            writer.flush()
            client.close()
            uses: list[Callable[[], None]] = [lambda: writer.write(batch(2)), writer.flush]
            for use in uses:
                with pytest.raises(FailedPreconditionError) as caught:
                    use()
                assert (caught.value.reason, caught.value.metadata) == ("CLIENT_CLOSED", {})
        with IngestClient(target, data_directory=tmp_path) as again:
            assert again.get_run("r1").row_counts.sample_count == 1


@pytest.mark.parametrize("place", PLACES)
async def test_an_asyncio_writer_refuses_and_leaves_quietly(tmp_path: Path, place: str) -> None:
    with target_of(place, tmp_path) as target:
        client = AsyncIngestClient(target, data_directory=tmp_path)
        async with client.writer("r1", "w1", SERIES) as writer:
            await writer.write(batch(1))
            await writer.flush()
            await client.close()
            for use in (writer.write(batch(2)), writer.flush()):
                with pytest.raises(FailedPreconditionError) as caught:
                    await use
                assert (caught.value.reason, caught.value.metadata) == ("CLIENT_CLOSED", {})
        async with AsyncIngestClient(target, data_directory=tmp_path) as again:
            assert (await again.get_run("r1")).row_counts.sample_count == 1


@pytest.mark.parametrize("place", PLACES)
def test_a_blocking_writer_raises_what_was_not_delivered(tmp_path: Path, place: str) -> None:
    with target_of(place, tmp_path) as target:

        def write_and_close() -> None:
            client = IngestClient(target, data_directory=tmp_path)
            with client.writer("r1", "w1", SERIES) as writer:
                for number in range(BATCH_COUNT):
                    writer.write(batch(number))
                client.close()

        check_nothing_is_lost_silently(error_of(write_and_close), target, tmp_path)


@pytest.mark.parametrize("place", PLACES)
async def test_an_asyncio_writer_raises_what_was_not_delivered(tmp_path: Path, place: str) -> None:
    with target_of(place, tmp_path) as target:

        async def write_and_close() -> None:
            client = AsyncIngestClient(target, data_directory=tmp_path)
            async with client.writer("r1", "w1", SERIES) as writer:
                for number in range(BATCH_COUNT):
                    await writer.write(batch(number))
                await client.close()

        with pytest.raises(FailedPreconditionError) as caught:
            await write_and_close()
        await asyncio.to_thread(check_nothing_is_lost_silently, caught.value, target, tmp_path)


async def test_a_given_channel_that_is_closed_under_a_writer_is_the_same(tmp_path: Path) -> None:
    with target_of("remote", tmp_path) as target:

        async def write_and_close() -> None:
            channel = grpc.aio.insecure_channel(target)
            async with (
                AsyncIngestClient(channel=channel) as client,
                client.writer("r1", "w1", SERIES) as writer,
            ):
                await writer.write(batch(0))
                await writer.flush()
                for number in range(1, BATCH_COUNT):
                    await writer.write(batch(number))
                await channel.close()

        with pytest.raises(FailedPreconditionError) as caught:
            await write_and_close()
        await asyncio.to_thread(check_nothing_is_lost_silently, caught.value, target, tmp_path)


@pytest.mark.parametrize("place", PLACES)
def test_a_writer_that_was_not_entered_yet_cannot_be(tmp_path: Path, place: str) -> None:
    with target_of(place, tmp_path) as target:
        client = IngestClient(target, data_directory=tmp_path)
        writer = client.writer("r1", "w1", SERIES)
        client.close()
        with pytest.raises(FailedPreconditionError) as caught, writer:
            pytest.fail("the block must not run")
        assert caught.value.reason == "CLIENT_CLOSED"
